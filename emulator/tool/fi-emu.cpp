//===- fi-emu.cpp - Runs a PTX kernel on the host -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Npy.h"
#include "fi-emulator/Emulator.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

using namespace fi::emulator;

namespace {

const char *const usage = R"(fi-emu: runs a kernel of a PTX file on the CPU

usage: fi-emu FILE.ptx [options]

  --list                  kernels with their parameters and sizes, and stop
  --kernel=NAME           the kernel; may be left out if there is one
  --grid=X[,Y[,Z]]        blocks (1)
  --block=X[,Y[,Z]]       threads of a block (1)
  --shared=BYTES          dynamic shared memory (0)
  --target=sm_NN          the device (the module's target)
  --arg=VALUE             one argument, in the kernel's order:
      FILE.npy              a pointer to the array; the kernel may write it
      inout:FILE.npy=OUT    the same, and the array is saved as OUT afterwards
      out:FILE.npy:T[N,M]   a pointer to a new array of type T, saved as FILE.npy
      zero:FILE.npy:T[N,M]  the same, filled with zeros first
      T:NUMBER              a number; T is i8 u8 i16 u16 i32 u32 i64 u64 f32 f64
      bytes:HEX             anything else
      map:S:X[,Y...]:ARRAY  a tensor map over an array, which is one of the first
                            four; boxes are X wide, swizzled by S bytes (0, 32,
                            64, 128)
      null                  a null pointer
    T of arrays: also f16 bf16 e4m3 e5m2. bf16 is saved as <V2, bytes as |u1.
  --check                 report races, reads of unwritten memory, cp.async that was
                          not waited for
  --allow-uninitialized   with --check: reads of unwritten memory are fine
  --seed=N                another order of warps, blocks and copies
  --steps=N               stop after N warp instructions
  --stats                 instructions, bank conflicts, sectors
  --repeat=N              run N times (speed)

Exit status: 0; 1 if anything was reported; 2 for errors in what was asked.

example:
  fi-emu gemm.ptx --kernel=gemm --grid=2,2 --block=128 --shared=19456 --check \
    --arg=a.npy --arg=b.npy --arg=out:c.npy:f32[128,128] \
    --arg=i32:128 --arg=i32:128 --arg=i32:64
)";

[[noreturn]] void die(const std::string &message) {
  std::fprintf(stderr, "fi-emu: error: %s\n", message.c_str());
  std::exit(2);
}

bool parseDim(const std::string &text, Dim3 &out) {
  uint32_t v[3] = {1, 1, 1};
  const char *p = text.c_str();
  for (int i = 0; i < 3; ++i) {
    char *end;
    unsigned long n = std::strtoul(p, &end, 10);
    if (end == p || n == 0 || n > 0x7fffffff)
      return false;
    v[i] = uint32_t(n);
    if (!*end) {
      out = Dim3{v[0], v[1], v[2]};
      return true;
    }
    if (*end != ',')
      return false;
    p = end + 1;
  }
  return false;
}

uint64_t parseNumber(const std::string &text, const char *what) {
  char *end;
  uint64_t n = std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end)
    die(std::string("expected a number for ") + what + ", but got '" + text +
        "'");
  return n;
}

struct Argument {
  std::vector<uint8_t> bytes;
  NpyArray array;
  uint64_t address = 0;
  std::string saveAs;
};

Argument parseArgument(Device &device, const std::string &text);

/// map:SWIZZLE:BOX:ARRAY. Dimensions are those of the array, the last first.
Argument parseMap(Device &device, const std::string &text) {
  using T = TensorMapConfig::Type;
  static const std::pair<const char *, T> types[] = {
      {"|u1", T::U8},  {"|i1", T::U8},  {"<u2", T::U16}, {"<i2", T::U16},
      {"<u4", T::U32}, {"<i4", T::I32}, {"<u8", T::U64}, {"<i8", T::I64},
      {"<f2", T::F16}, {"<f4", T::F32}, {"<f8", T::F64}, {"<V2", T::BF16}};
  size_t box = text.find(':', 4);
  size_t rest = box == std::string::npos ? box : text.find(':', box + 1);
  if (rest == std::string::npos)
    die("expected map:SWIZZLE:BOX:ARRAY, but got '" + text + "'");
  TensorMapConfig c;
  uint64_t swizzle = parseNumber(text.substr(4, box - 4), "a swizzle");
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    die("expected a swizzle of 0, 32, 64 or 128 bytes, but got '" + text + "'");
  for (uint64_t s = swizzle; s > 16; s /= 2)
    c.swizzle = TensorMapConfig::Swizzle(uint32_t(c.swizzle) + 1);
  Argument a = parseArgument(device, text.substr(rest + 1));
  if (!a.address)
    die("expected an array in '" + text + "'");
  const std::vector<uint64_t> &shape = a.array.shape;
  if (shape.empty() || shape.size() > 5)
    die("expected an array of 1 to 5 dimensions in '" + text + "'");
  bool known = false;
  for (auto &[descr, type] : types)
    if (a.array.descr == descr) {
      c.type = type;
      known = true;
    }
  if (!known)
    die("there are no tensor maps of " + a.array.descr + ", in '" + text + "'");
  c.rank = uint32_t(shape.size());
  c.address = a.address;
  uint64_t bytes = elementBytes(a.array.descr);
  const char *p = text.c_str() + box + 1;
  for (uint32_t i = 0; i < c.rank; ++i) {
    c.dims[i] = shape[c.rank - 1 - i];
    if (i > 0)
      c.strides[i - 1] = bytes;
    bytes *= c.dims[i];
    char *end;
    c.box[i] = uint32_t(std::strtoul(p, &end, 10));
    if (end == p || *end != (i + 1 < c.rank ? ',' : ':'))
      die("expected a box of " + std::to_string(c.rank) + " sizes in '" + text +
          "'");
    p = end + 1;
  }
  alignas(64) uint8_t map[tensorMapBytes];
  std::string error;
  if (!encodeTensorMap(c, map, error))
    die(error + ", in '" + text + "'");
  a.bytes.assign(map, map + sizeof(map));
  return a;
}

Argument parseArgument(Device &device, const std::string &text) {
  Argument a;
  std::string error;
  if (text.compare(0, 4, "map:") == 0)
    return parseMap(device, text);
  auto upload = [&](bool defined) {
    size_t size = std::max<size_t>(a.array.bytes.size(), 1);
    a.address = device.memAlloc(size, error);
    if (!a.address)
      die(error);
    if (defined && !a.array.bytes.empty() &&
        !device.memcpyToDevice(a.address, a.array.bytes.data(),
                               a.array.bytes.size(), error))
      die(error);
    a.bytes.resize(8);
    std::memcpy(a.bytes.data(), &a.address, 8);
  };
  if (text == "null") {
    a.bytes.assign(8, 0);
    return a;
  }
  size_t colon = text.find(':');
  std::string head = colon == std::string::npos ? "" : text.substr(0, colon);
  std::string rest = colon == std::string::npos ? text : text.substr(colon + 1);
  if (head == "out" || head == "zero") {
    size_t second = rest.rfind(':');
    size_t bracket = rest.find('[', second == std::string::npos ? 0 : second);
    if (second == std::string::npos || bracket == std::string::npos ||
        rest.back() != ']')
      die("expected " + head + ":FILE.npy:TYPE[SHAPE], but got '" + text + "'");
    a.saveAs = rest.substr(0, second);
    std::string type = rest.substr(second + 1, bracket - second - 1);
    a.array.descr = descrOf(type);
    if (a.array.descr.empty())
      die("unknown type '" + type + "' in '" + text + "'");
    uint64_t count = elementBytes(a.array.descr);
    const char *p = rest.c_str() + bracket + 1;
    while (*p && *p != ']') {
      char *end;
      uint64_t n = std::strtoull(p, &end, 10);
      if (end == p || (*end != ',' && *end != ']'))
        die("expected a shape such as [128,64], but got '" + text + "'");
      if (n && count > (uint64_t(1) << 36) / n)
        die("the array of '" + text + "' is too large");
      a.array.shape.push_back(n);
      count *= n;
      p = *end == ',' ? end + 1 : end;
    }
    a.array.bytes.assign(count, 0);
    upload(head == "zero");
    return a;
  }
  if (head == "inout") {
    size_t eq = rest.find('=');
    std::string file = rest.substr(0, eq);
    a.saveAs = eq == std::string::npos ? file : rest.substr(eq + 1);
    if (!readNpy(file, a.array, error))
      die(error);
    upload(true);
    return a;
  }
  if (head == "bytes") {
    if (rest.size() % 2)
      die("expected an even number of digits in '" + text + "'");
    for (size_t i = 0; i < rest.size(); i += 2)
      a.bytes.push_back(
          uint8_t(parseNumber("0x" + rest.substr(i, 2), "bytes:")));
    return a;
  }
  std::string descr = descrOf(head);
  if (!head.empty() && !descr.empty()) {
    uint64_t size = elementBytes(descr);
    a.bytes.resize(size);
    if (head == "f32" || head == "f64") {
      char *end;
      double d = std::strtod(rest.c_str(), &end);
      if (rest.empty() || *end)
        die("expected a number, but got '" + text + "'");
      float f = float(d);
      std::memcpy(a.bytes.data(), head == "f32" ? static_cast<void *>(&f) : &d,
                  size);
    } else if (descr[1] == 'f' || descr[1] == 'V') {
      die("numbers of type " + head + " are passed as bytes:HEX");
    } else {
      bool negative = !rest.empty() && rest[0] == '-';
      uint64_t v = parseNumber(negative ? rest.substr(1) : rest, "an argument");
      v = negative ? 0 - v : v;
      std::memcpy(a.bytes.data(), &v, size);
    }
    return a;
  }
  if (text.size() > 4 && text.compare(text.size() - 4, 4, ".npy") == 0) {
    if (!readNpy(text, a.array, error))
      die(error);
    upload(true);
    return a;
  }
  die("cannot understand the argument '" + text + "'; see --help");
}

void list(const Module &module) {
  for (const Function *f : module.functions()) {
    std::printf("%s\n", f->name().c_str());
    for (const ParameterInfo &p : f->parameters())
      std::printf("  offset %3llu  %s%s  %s\n",
                  static_cast<unsigned long long>(p.offset), p.type.c_str(),
                  p.type[0] == 'b' && p.bytes > 8
                      ? ("[" + std::to_string(p.bytes) + "]").c_str()
                      : "",
                  p.name.c_str());
    Dim3 t = f->maxThreads();
    std::printf(
        "  %u instructions, %u registers of PTX, %u words live at once, "
        "%u bytes of shared and %u of local memory",
        f->instructions(), f->virtualRegisters(), f->liveRegisters(),
        f->staticSharedBytes(), f->localBytes());
    if (t.x)
      std::printf(", at most %u x %u x %u threads", t.x, t.y, t.z);
    std::printf("\n");
  }
}

void printStatistics(const Statistics &s) {
  std::printf("%llu warp instructions in %.3f s, %.3f s of the processor: "
              "%.1f M/s\n",
              static_cast<unsigned long long>(s.warpInstructions), s.seconds,
              s.processorSeconds,
              double(s.warpInstructions) / s.processorSeconds / 1e6);
  auto sorted = s.byMnemonic;
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  for (auto &[name, n] : sorted)
    std::printf("  %-14s %12llu\n", name.c_str(),
                static_cast<unsigned long long>(n));
  if (s.sharedAccesses)
    std::printf("shared memory: %llu accesses in %llu passes: %.3f a access\n",
                static_cast<unsigned long long>(s.sharedAccesses),
                static_cast<unsigned long long>(s.sharedPasses),
                double(s.sharedPasses) / double(s.sharedAccesses));
  if (s.globalAccesses)
    std::printf("global memory: %llu accesses of %llu sectors: %.3f a access\n",
                static_cast<unsigned long long>(s.globalAccesses),
                static_cast<unsigned long long>(s.globalSectors),
                double(s.globalSectors) / double(s.globalAccesses));
}

} // namespace

int main(int argc, char **argv) {
  std::string path, kernel, target, error;
  std::vector<std::string> arguments;
  Dim3 grid, block;
  uint32_t shared = 0;
  uint64_t repeat = 1;
  bool stats = false, listOnly = false;
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    auto value = [&](const char *key, std::string &out) {
      std::string prefix = std::string(key) + "=";
      if (a.compare(0, prefix.size(), prefix) != 0)
        return false;
      out = a.substr(prefix.size());
      return true;
    };
    std::string v;
    if (a == "--help" || a == "-h") {
      std::fputs(usage, stdout);
      return 0;
    }
    if (value("--kernel", kernel) || value("--target", target))
      continue;
    if (value("--grid", v)) {
      if (!parseDim(v, grid))
        die("expected --grid=X[,Y[,Z]], but got '" + v + "'");
    } else if (value("--block", v)) {
      if (!parseDim(v, block))
        die("expected --block=X[,Y[,Z]], but got '" + v + "'");
    } else if (value("--shared", v)) {
      shared = uint32_t(parseNumber(v, "--shared"));
    } else if (value("--arg", v)) {
      arguments.push_back(v);
    } else if (value("--seed", v)) {
      options.seed = parseNumber(v, "--seed");
    } else if (value("--steps", v)) {
      options.stepLimit = parseNumber(v, "--steps");
    } else if (value("--repeat", v)) {
      repeat = parseNumber(v, "--repeat");
    } else if (a == "--check") {
      options.check = true;
    } else if (a == "--allow-uninitialized") {
      options.checkUninitialized = false;
    } else if (a == "--stats") {
      stats = true;
      options.countAccesses = repeat == 1;
    } else if (a == "--list") {
      listOnly = true;
    } else if (a[0] == '-') {
      die("unknown option '" + a + "'; see --help");
    } else if (path.empty()) {
      path = a;
    } else {
      die("expected one file, but got '" + path + "' and '" + a + "'");
    }
  }
  if (path.empty()) {
    std::fputs(usage, stderr);
    return 2;
  }
  // Counting accesses would be what is measured.
  if (repeat > 1)
    options.countAccesses = false;
  std::ifstream in(path, std::ios::binary);
  if (!in)
    die(path + ": cannot be opened");
  std::string ptx((std::istreambuf_iterator<char>(in)),
                  std::istreambuf_iterator<char>());
  if (target.empty()) {
    // The device is the module's own target.
    size_t at = ptx.find(".target");
    at = at == std::string::npos ? at : ptx.find("sm_", at);
    if (at != std::string::npos) {
      size_t end = ptx.find_first_of(" ,\t\r\n", at);
      target = ptx.substr(at, end - at);
    } else {
      target = "sm_80";
    }
  }
  auto device = Device::create(target, options, error);
  if (!device)
    die(error);
  Module *module = device->moduleLoad(path, ptx, error);
  if (!module)
    die(error);
  if (listOnly) {
    list(*module);
    return 0;
  }
  std::vector<const Function *> all = module->functions();
  if (kernel.empty()) {
    if (all.size() != 1)
      die(path + " has " + std::to_string(all.size()) +
          " kernels; choose one by --kernel, see --list");
    kernel = all[0]->name();
  }
  const Function *f = module->getFunction(kernel, error);
  if (!f)
    die(error);
  const std::vector<ParameterInfo> &infos = f->parameters();
  if (infos.size() != arguments.size())
    die("kernel '" + kernel + "' has " + std::to_string(infos.size()) +
        " parameters, but there are " + std::to_string(arguments.size()) +
        " --arg; see --list");
  std::vector<Argument> args;
  std::vector<uint8_t> params(f->parameterBytes());
  for (size_t i = 0; i < infos.size(); ++i) {
    args.push_back(parseArgument(*device, arguments[i]));
    if (args[i].bytes.size() != infos[i].bytes)
      die("parameter " + std::to_string(i) + " ('" + infos[i].name + "') has " +
          std::to_string(infos[i].bytes) + " bytes, but '" + arguments[i] +
          "' " + std::to_string(args[i].bytes.size()));
    std::memcpy(params.data() + infos[i].offset, args[i].bytes.data(),
                infos[i].bytes);
  }
  LaunchConfig config;
  config.grid = grid;
  config.block = block;
  config.dynamicShared = shared;
  config.params = params.data();
  config.paramBytes = params.size();
  int status = 0;
  for (uint64_t r = 0; r < repeat && !status; ++r) {
    LaunchResult result = device->launch(*f, config);
    for (const Report &report : result.reports)
      std::printf("%s\n", report.str().c_str());
    if (!result.error.empty() && result.reports.empty())
      std::fprintf(stderr, "fi-emu: error: %s\n", result.error.c_str());
    if (!result.ok())
      status = result.reports.empty() ? 2 : 1;
    if (stats && (r + 1 == repeat || status))
      printStatistics(result.statistics);
  }
  for (Argument &a : args) {
    if (a.saveAs.empty())
      continue;
    if (!a.array.bytes.empty() &&
        !device->memcpyToHost(a.array.bytes.data(), a.address,
                              a.array.bytes.size(), error))
      die(error);
    if (!writeNpy(a.saveAs, a.array, error))
      die(error);
  }
  return status;
}
