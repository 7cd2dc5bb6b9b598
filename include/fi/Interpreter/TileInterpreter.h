//===- TileInterpreter.h - executes level 2 as it stands --------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs one `fi_tile.kernel` over work items, on host tensors. It serves to find
// faults of the passes above and below level 2, so it shares no arithmetic with
// the compiler: addresses, masks and the softmax are its own and naive, and
// whatever lies outside a tensor, an item or a state slot is an error that
// names the op and its location.
//
// The placed form is executed as well, until channels are lowered: a ring that
// would wait for ever, a buffer that is touched out of its turn, a copy that is
// read before it was waited for are errors, and so are groups of warps that
// miss one another. Layouts have no meaning here.
//
// Numbers: floats are held in double. They are rounded to their type where they
// are stored, by `arith.truncf`, and when made from integers; results of other
// arithmetic are not rounded. Integers have exactly the width of their type.
// Poison (an excessive shift, a float beyond the integers) is a fixed value; a
// division by zero is an error.
//
//===----------------------------------------------------------------------===//

#ifndef FI_INTERPRETER_TILEINTERPRETER_H
#define FI_INTERPRETER_TILEINTERPRETER_H

#include "fi/ABI/KernelABI.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "fi/Support/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <map>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

namespace fi::tile {

/// A memref argument, or a scalar of a float or integer type.
using TileArgument = std::variant<HostTensor, double, int64_t>;

/// Remembers across kernels and threads which state slots hold a state. A state
/// that nobody has read may not be overwritten.
class StateSlots {
public:
  /// False if the slot holds a state that was not read.
  bool write(const float *states, int64_t slot);
  /// False if the slot holds no state.
  bool read(const float *states, int64_t slot);
  void clear();

private:
  std::mutex mutex;
  std::map<std::pair<const float *, int64_t>, bool> wasRead;
};

/// Does the items [begin, end) of `work`, in order. `arguments` are those of
/// the kernel without the work. Without `slots`, only a state overwritten
/// within this call is found.
llvm::Error interpretKernel(KernelOp kernel,
                            llvm::ArrayRef<TileArgument> arguments,
                            const fi_work &work, int64_t begin, int64_t end,
                            StateSlots *slots = nullptr);

/// The offset, in elements from the base of its pool, of the row of a key or
/// value. `tables` are the view's page tables; all indices are checked.
llvm::Expected<int64_t> getKVRowOffset(KVViewTypeInterface view,
                                       llvm::ArrayRef<HostTensor> pools,
                                       llvm::ArrayRef<HostTensor> tables,
                                       KVPart part, int64_t head, int64_t key,
                                       int64_t tableBegin);

/// The kernels of a module as functions of the kernel ABI, so that the runtime
/// can plan and run a package without code: pass `lookupSymbol` and this object
/// to fi_package_from_memory. Must outlive the package, and the module this.
///
/// A kernel of the ABI cannot fail. The first error is kept here, and what runs
/// after it does nothing: ask `takeError` after each fi_run.
class InterpretedKernels {
public:
  /// At most this many kernels at a time in a process.
  static constexpr unsigned kMaxKernels = 64;

  static llvm::Expected<std::unique_ptr<InterpretedKernels>>
  create(mlir::ModuleOp module);
  ~InterpretedKernels();
  InterpretedKernels(const InterpretedKernels &) = delete;
  InterpretedKernels &operator=(const InterpretedKernels &) = delete;

  /// Null if the module has no such kernel.
  fi_cpu_kernel lookup(llvm::StringRef symbol) const;
  /// An fi_symbol_lookup; `context` is an InterpretedKernels.
  static void *lookupSymbol(void *context, const char *symbol);
  /// The first error since the last call, which also forgets all states.
  llvm::Error takeError();

private:
  friend struct KernelTrampolines;
  InterpretedKernels() = default;
  void run(KernelOp kernel, const int64_t *params, const fi_work &work,
           int64_t begin, int64_t end);

  struct Entry {
    KernelOp kernel;
    unsigned trampoline;
  };
  std::vector<Entry> entries;
  StateSlots slots;
  std::mutex mutex;
  bool failed = false;
  std::string message;
};

} // namespace fi::tile

#endif // FI_INTERPRETER_TILEINTERPRETER_H
