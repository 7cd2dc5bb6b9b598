//===- Device.cpp - Memory, modules and launches --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Launch.h"

#include <algorithm>
#include <cstdlib>

namespace fi::emulator {
namespace {

const char *typeName(Type type) {
  static const char *names[] = {"none",   "pred", "b8",  "b16", "b32",   "b64",
                                "b128",   "u8",   "u16", "u32", "u64",   "s8",
                                "s16",    "s32",  "s64", "f16", "f16x2", "bf16",
                                "bf16x2", "f32",  "f64"};
  return names[int(type)];
}

class FunctionImpl final : public Function {
public:
  const std::string &name() const override { return nameText; }
  const std::vector<ParameterInfo> &parameters() const override {
    return params;
  }
  size_t parameterBytes() const override { return kernel.function->paramBytes; }
  uint32_t staticSharedBytes() const override { return kernel.sharedBytes; }
  uint32_t localBytes() const override { return kernel.localBytes; }
  uint32_t virtualRegisters() const override { return kernel.virtualRegisters; }
  uint32_t liveRegisters() const override { return kernel.registerSlots; }
  uint32_t instructions() const override {
    return uint32_t(kernel.code.size());
  }
  Dim3 maxThreads() const override {
    const PtxFunction &f = *kernel.function;
    const uint32_t *t = f.reqThreads[0] ? f.reqThreads : f.maxThreads;
    return Dim3{t[0], t[1], t[2]};
  }
  void finish() {
    nameText = std::string(kernel.function->name);
    for (const Variable *v : kernel.function->params)
      params.push_back({std::string(v->name), v->offset, v->bytes, v->align,
                        typeName(v->type)});
  }

  Kernel kernel;
  const void *owner = nullptr;

private:
  std::string nameText;
  std::vector<ParameterInfo> params;
};

class ModuleImpl final : public Module {
public:
  const std::string &name() const override { return loaded.ast.name; }
  std::vector<const Function *> functions() const override {
    std::vector<const Function *> out;
    for (const FunctionImpl &f : kernels)
      out.push_back(&f);
    return out;
  }
  const Function *getFunction(std::string_view name,
                              std::string &error) const override {
    std::string known;
    for (const FunctionImpl &f : kernels) {
      if (f.name() == name)
        return &f;
      known += (known.empty() ? "'" : ", '") + f.name() + "'";
    }
    error = "unknown kernel '" + std::string(name) + "'; the module has " +
            (known.empty() ? "none" : known);
    return nullptr;
  }
  bool getGlobal(std::string_view name, uint64_t &address,
                 size_t &bytes) const override {
    auto it = loaded.ast.variableByName.find(name);
    if (it == loaded.ast.variableByName.end())
      return false;
    auto at = loaded.addresses.find(it->second);
    if (at == loaded.addresses.end())
      return false;
    address = at->second;
    bytes = it->second->bytes;
    return true;
  }

  LoadedModule loaded;
  std::deque<FunctionImpl> kernels;
  std::vector<uint64_t> allocations;
};

struct TargetName {
  uint32_t number = 0;
  char suffix = 0; // a, f
};
bool parseTarget(std::string_view text, TargetName &out) {
  if (text.substr(0, 3) != "sm_")
    return false;
  text.remove_prefix(3);
  size_t i = 0;
  while (i < text.size() && text[i] >= '0' && text[i] <= '9' && i < 4)
    out.number = out.number * 10 + uint32_t(text[i++] - '0');
  if (i < text.size() && (text[i] == 'a' || text[i] == 'f'))
    out.suffix = text[i++];
  return i == text.size() && out.number >= 50 && out.number <= 130;
}

class DeviceImpl final : public Device {
public:
  DeviceImpl(std::string_view target, const Options &options)
      : targetText(target), opts(options) {
    parseTarget(target, number);
  }

  Options &options() override { return opts; }
  const std::string &target() const override { return targetText; }

  uint64_t memAlloc(size_t bytes, std::string &error) override {
    return memory.allocate(bytes, error);
  }
  bool memFree(uint64_t address, std::string &error) override {
    return memory.remove(address, true, error);
  }
  bool registerMemory(void *pointer, size_t bytes, bool writable,
                      std::string &error) override {
    return memory.add(uint64_t(reinterpret_cast<uintptr_t>(pointer)), bytes,
                      writable, error);
  }
  bool unregisterMemory(void *pointer, std::string &error) override {
    return memory.remove(uint64_t(reinterpret_cast<uintptr_t>(pointer)), false,
                         error);
  }
  bool range(uint64_t address, size_t bytes, const char *what,
             std::string &error, Allocation *&out) {
    out = memory.find(address, bytes);
    if (!out)
      error = std::string(what) + " of " + std::to_string(bytes) +
              " bytes at " + memory.describe(address);
    return out != nullptr;
  }
  bool memcpyToDevice(uint64_t to, const void *from, size_t bytes,
                      std::string &error) override {
    Allocation *a;
    if (bytes == 0)
      return true;
    if (!range(to, bytes, "copy", error, a))
      return false;
    std::memcpy(reinterpret_cast<void *>(uintptr_t(to)), from, bytes);
    markWritten(*a, to, bytes);
    return true;
  }
  bool memcpyToHost(void *to, uint64_t from, size_t bytes,
                    std::string &error) override {
    Allocation *a;
    if (bytes == 0)
      return true;
    if (!range(from, bytes, "copy", error, a))
      return false;
    std::memcpy(to, reinterpret_cast<const void *>(uintptr_t(from)), bytes);
    return true;
  }
  bool memset(uint64_t to, uint8_t value, size_t bytes,
              std::string &error) override {
    Allocation *a;
    if (bytes == 0)
      return true;
    if (!range(to, bytes, "memset", error, a))
      return false;
    std::memset(reinterpret_cast<void *>(uintptr_t(to)), value, bytes);
    markWritten(*a, to, bytes);
    return true;
  }

  Module *moduleLoad(std::string_view name, std::string_view ptx,
                     std::string &error) override {
    error.clear();
    auto module = std::make_unique<ModuleImpl>();
    PtxModule &ast = module->loaded.ast;
    // A text that ends in zeros is what a driver's image may look like.
    while (!ptx.empty() && ptx.back() == '\0')
      ptx.remove_suffix(1);
    if (!parseModule(std::string(name), std::string(ptx), ast, error))
      return nullptr;
    TargetName target;
    if (!parseTarget(ast.target, target)) {
      error = std::string(name) + ": unknown target '" +
              std::string(ast.target) + "'";
      return nullptr;
    }
    bool runs = target.suffix == 'a' ? target.number == number.number
                : target.suffix == 'f'
                    ? target.number / 10 == number.number / 10 &&
                          target.number <= number.number
                    : target.number <= number.number;
    if (!runs) {
      error = std::string(name) + ": the module is for " +
              std::string(ast.target) + ", but the device is " + targetText;
      return nullptr;
    }
    if (!placeVariables(*module, error) || !decode(*module, error)) {
      release(*module);
      return nullptr;
    }
    modules.push_back(std::move(module));
    return modules.back().get();
  }
  void moduleUnload(Module *module) override {
    for (auto it = modules.begin(); it != modules.end(); ++it)
      if (it->get() == module) {
        release(**it);
        modules.erase(it);
        return;
      }
  }

  uint32_t occupancy(const Function &function, Dim3 block,
                     uint32_t dynamicShared) const override {
    const auto &f = static_cast<const FunctionImpl &>(function);
    uint64_t threads = uint64_t(block.x) * block.y * block.z;
    if (threads == 0 || threads > 1024)
      return 0;
    uint64_t shared = f.kernel.dynamicOffset() + uint64_t(dynamicShared);
    if (shared > opts.sharedPerBlock)
      return 0;
    uint64_t warps = (threads + 31) / 32;
    uint64_t n =
        std::min<uint64_t>(opts.blocksPerMultiprocessor,
                           opts.threadsPerMultiprocessor / (warps * 32));
    // Each block has 1 KiB more than it asks for.
    return uint32_t(
        std::min(n, opts.sharedPerMultiprocessor / (shared + 1024)));
  }

  LaunchResult launch(const Function &function,
                      const LaunchConfig &c) override {
    LaunchResult result;
    const auto &f = static_cast<const FunctionImpl &>(function);
    auto refuse = [&](const std::string &message) {
      result.error = "kernel '" + f.name() + "': " + message;
      return result;
    };
    uint64_t threads = uint64_t(c.block.x) * c.block.y * c.block.z;
    uint64_t blocks = uint64_t(c.grid.x) * c.grid.y * c.grid.z;
    if (threads == 0 || threads > 1024 || c.block.x > 1024 ||
        c.block.y > 1024 || c.block.z > 64)
      return refuse("expected a block of 1 to 1024 threads, but got " +
                    std::to_string(c.block.x) + " x " +
                    std::to_string(c.block.y) + " x " +
                    std::to_string(c.block.z));
    if (blocks == 0 || c.grid.y > 65535 || c.grid.z > 65535 ||
        blocks > 0x7fffffff)
      return refuse(
          "expected a grid of at least one block and at most 65535 in y "
          "and z, but got " +
          std::to_string(c.grid.x) + " x " + std::to_string(c.grid.y) + " x " +
          std::to_string(c.grid.z));
    const PtxFunction &ast = *f.kernel.function;
    uint64_t most =
        uint64_t(ast.maxThreads[0]) * ast.maxThreads[1] * ast.maxThreads[2];
    if (most && threads > most)
      return refuse("the block has " + std::to_string(threads) +
                    " threads, but .maxntid allows " + std::to_string(most));
    if (ast.reqThreads[0] &&
        (ast.reqThreads[0] != c.block.x || ast.reqThreads[1] != c.block.y ||
         ast.reqThreads[2] != c.block.z))
      return refuse("the block is not the one that .reqntid asks for, " +
                    std::to_string(ast.reqThreads[0]) + " x " +
                    std::to_string(ast.reqThreads[1]) + " x " +
                    std::to_string(ast.reqThreads[2]));
    if (c.paramBytes != ast.paramBytes)
      return refuse("expected " + std::to_string(ast.paramBytes) +
                    " bytes of parameters, but got " +
                    std::to_string(c.paramBytes));
    uint64_t shared = f.kernel.dynamicOffset() + uint64_t(c.dynamicShared);
    if (shared > opts.sharedPerBlock)
      return refuse("the block needs " + std::to_string(shared) +
                    " bytes of shared memory, but the device has " +
                    std::to_string(opts.sharedPerBlock));
    uint32_t perSM = std::max(1u, occupancy(f, c.block, c.dynamicShared));
    Launch launch(f.kernel, opts, memory, c, perSM * opts.multiprocessors,
                  ++generation);
    if (!opts.check)
      memory.markAllWritten();
    launch.startTime = time;
    result = launch.run();
    time += launch.steps;
    return result;
  }

private:
  bool placeVariables(ModuleImpl &module, std::string &error) {
    PtxModule &ast = module.loaded.ast;
    std::vector<const Variable *> all;
    for (Variable &v : ast.variables)
      all.push_back(&v);
    for (PtxFunction &f : ast.functions)
      for (Variable &v : f.variables)
        all.push_back(&v);
    uint64_t total = 0;
    for (const Variable *v : all) {
      if ((v->space != Space::Global && v->space != Space::Const) ||
          v->isExtern || v->bytes == 0)
        continue;
      total += v->bytes;
      if (total > (uint64_t(4) << 30)) {
        error = ast.name + ": variables are larger than 4 GiB";
        return false;
      }
      uint64_t at = memory.allocate(v->bytes, error);
      if (!at) {
        error = ast.name + ": " + error;
        return false;
      }
      module.allocations.push_back(at);
      module.loaded.addresses[v] = at;
      auto *p = reinterpret_cast<uint8_t *>(uintptr_t(at));
      std::memset(p, 0, v->bytes);
      if (!v->init.empty())
        std::memcpy(p, v->init.data(),
                    std::min<uint64_t>(v->init.size(), v->bytes));
      Allocation *a = memory.find(at);
      a->written.clear(); // variables begin as zeros
    }
    for (const Variable *v : all) {
      auto own = module.loaded.addresses.find(v);
      if (own == module.loaded.addresses.end())
        continue;
      for (const Variable::Address &slot : v->addresses) {
        auto it = ast.variableByName.find(slot.name);
        auto at = it == ast.variableByName.end()
                      ? module.loaded.addresses.end()
                      : module.loaded.addresses.find(it->second);
        if (at == module.loaded.addresses.end()) {
          error = ast.name + ":" + std::to_string(v->line) + ": '" +
                  std::string(slot.name) + "' has no address";
          return false;
        }
        if (slot.at + 8 > v->bytes)
          continue;
        uint64_t value = at->second + uint64_t(slot.addend);
        std::memcpy(reinterpret_cast<void *>(uintptr_t(own->second + slot.at)),
                    &value, 8);
      }
    }
    return true;
  }
  static bool decode(ModuleImpl &module, std::string &error) {
    for (PtxFunction &f : module.loaded.ast.functions) {
      if (!f.isEntry || !f.hasBody)
        continue;
      FunctionImpl &k = module.kernels.emplace_back();
      if (!decodeKernel(module.loaded, f, k.kernel, error))
        return false;
      k.finish();
    }
    return true;
  }
  void release(ModuleImpl &module) {
    std::string ignored;
    for (uint64_t a : module.allocations)
      memory.remove(a, true, ignored);
  }

  std::string targetText;
  Options opts;
  TargetName number;
  MemoryMap memory;
  std::vector<std::unique_ptr<ModuleImpl>> modules;
  uint32_t generation = 0;
  uint64_t time = 0; // warp instructions of all launches
};

} // namespace

std::unique_ptr<Device> Device::create(std::string_view target,
                                       const Options &options,
                                       std::string &error) {
  TargetName parsed;
  if (!parseTarget(target, parsed)) {
    error = "unknown target '" + std::string(target) +
            "'; expected sm_<number>, for example sm_80 or sm_90a";
    return nullptr;
  }
  return std::make_unique<DeviceImpl>(target, options);
}

const char *nameOf(ReportKind kind) {
  static const char *names[] = {"out-of-bounds access",
                                "misaligned access",
                                "race",
                                "uninitialized memory",
                                "uninitialized register",
                                "pending copy",
                                "non-coherent read",
                                "divergence",
                                "barrier misuse",
                                "deadlock",
                                "step limit",
                                "invalid instruction",
                                "trap",
                                "missing proxy fence",
                                "mbarrier fault",
                                "wgmma fault",
                                "register fault"};
  return names[int(kind)];
}

namespace {
std::string text(const Place &p) {
  std::string out = "PTX line " + std::to_string(p.ptxLine);
  if (!p.ptx.empty())
    out += ": " + p.ptx;
  if (p.line) {
    out += "\n    from " + p.file + ":" + std::to_string(p.line) + ":" +
           std::to_string(p.column);
    for (const std::string &s : p.inlinedAt)
      out += "\n    inlined at " + s;
  }
  return out;
}
} // namespace

std::string Report::str() const {
  auto triple = [](const std::array<uint32_t, 3> &v) {
    return "(" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " +
           std::to_string(v[2]) + ")";
  };
  char mask[16];
  std::snprintf(mask, sizeof(mask), "0x%08x", lanes);
  std::string out = std::string(nameOf(kind)) + ": " + message + "\n  kernel " +
                    kernel + ", block " + triple(block) + ", warp " +
                    std::to_string(warp) + ", lanes " + mask +
                    ", first thread " + triple(thread);
  if (count > 1)
    out += ", " + std::to_string(count) + " times";
  out += "\n  at " + text(place);
  if (hasOther)
    out += "\n  the other is " + text(other);
  return out;
}

} // namespace fi::emulator
