//===- InterpretedKernels.cpp - interpreted kernels for the runtime -------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel of the ABI is a bare function pointer, without a place for context.
// So there is a fixed number of functions, each of which looks up in a table
// what it stands for.
//
//===----------------------------------------------------------------------===//

#include "RuntimeValue.h"
#include "fi/Interpreter/TileInterpreter.h"
#include <atomic>
#include <cstring>
#include <utility>

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace fi::tile {
struct KernelTrampolines {
  struct Target {
    InterpretedKernels *owner = nullptr;
    KernelOp kernel;
  };

  template <size_t index>
  static void call(const int64_t *params, const fi_work *work, int64_t begin,
                   int64_t end, void *) {
    const Target &target = targets[index];
    target.owner->run(target.kernel, params, *work, begin, end);
  }

  template <size_t... indices>
  static fi_cpu_kernel get(size_t index, std::index_sequence<indices...>) {
    static constexpr fi_cpu_kernel functions[] = {call<indices>...};
    return functions[index];
  }
  static fi_cpu_kernel get(size_t index) {
    return get(index,
               std::make_index_sequence<InterpretedKernels::kMaxKernels>());
  }

  /// A free trampoline, now taken; none if there is none.
  static std::optional<unsigned> take(InterpretedKernels *owner,
                                      KernelOp kernel) {
    std::lock_guard<std::mutex> lock(mutex);
    for (unsigned i = 0; i < InterpretedKernels::kMaxKernels; ++i)
      if (!targets[i].owner) {
        targets[i] = {owner, kernel};
        return i;
      }
    return std::nullopt;
  }
  static void giveBack(unsigned index) {
    std::lock_guard<std::mutex> lock(mutex);
    targets[index] = {};
  }

  static std::mutex mutex;
  static Target targets[InterpretedKernels::kMaxKernels];
};
std::mutex KernelTrampolines::mutex;
KernelTrampolines::Target
    KernelTrampolines::targets[InterpretedKernels::kMaxKernels];
} // namespace fi::tile

llvm::Expected<std::unique_ptr<InterpretedKernels>>
InterpretedKernels::create(ModuleOp module) {
  std::unique_ptr<InterpretedKernels> result(new InterpretedKernels());
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    for (Type type : kernel.getArgumentTypes().drop_back())
      if (isa<FloatType>(type) && !type.isF32()) {
        std::string text;
        llvm::raw_string_ostream(text) << type;
        return makeError(kernel, "expected float scalars of f32, which the "
                                 "kernel ABI can pass, but got " +
                                     text);
      }
    std::optional<unsigned> trampoline =
        KernelTrampolines::take(result.get(), kernel);
    if (!trampoline)
      return makeError(kernel, "expected at most " + llvm::Twine(kMaxKernels) +
                                   " interpreted kernels at a time; release "
                                   "those of other modules");
    result->entries.push_back({kernel, *trampoline});
  }
  return result;
}

InterpretedKernels::~InterpretedKernels() {
  for (Entry &entry : entries)
    KernelTrampolines::giveBack(entry.trampoline);
}

fi_cpu_kernel InterpretedKernels::lookup(StringRef symbol) const {
  for (const Entry &entry : entries)
    if (KernelOp(entry.kernel).getSymName() == symbol)
      return KernelTrampolines::get(entry.trampoline);
  return nullptr;
}

void *InterpretedKernels::lookupSymbol(void *context, const char *symbol) {
  static int32_t version = FI_ABI_VERSION;
  if (StringRef(symbol) == FI_ABI_VERSION_SYMBOL)
    return &version;
  return reinterpret_cast<void *>(
      static_cast<InterpretedKernels *>(context)->lookup(symbol));
}

llvm::Error InterpretedKernels::takeError() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failed)
    return llvm::Error::success();
  failed = false;
  slots.clear();
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 std::exchange(message, {}));
}

/// The arguments behind `params`, as docs/abi.md lays them out.
static SmallVector<TileArgument> decode(KernelOp kernel,
                                        const int64_t *params) {
  SmallVector<TileArgument> arguments;
  for (Type type : kernel.getArgumentTypes().drop_back()) {
    if (auto memory = dyn_cast<MemRefType>(type)) {
      int64_t rank = memory.getRank();
      arguments.push_back(
          HostTensor(getDType(memory.getElementType()).value_or(DType::I8),
                     ArrayRef<int64_t>(params + 1, rank),
                     reinterpret_cast<void *>(params[0]),
                     ArrayRef<int64_t>(params + 1 + rank, rank)));
      params += 1 + 2 * rank;
      continue;
    }
    if (isa<FloatType>(type)) {
      float number;
      std::memcpy(&number, params, sizeof(number));
      arguments.push_back(double(number));
    } else {
      arguments.push_back(*params);
    }
    ++params;
  }
  return arguments;
}

void InterpretedKernels::run(KernelOp kernel, const int64_t *params,
                             const fi_work &work, int64_t begin, int64_t end) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (failed)
      return;
  }
  llvm::Error error =
      interpretKernel(kernel, decode(kernel, params), work, begin, end, &slots);
  if (!error)
    return;
  std::string text = llvm::toString(std::move(error));
  std::lock_guard<std::mutex> lock(mutex);
  if (!failed)
    message = std::move(text);
  failed = true;
}
