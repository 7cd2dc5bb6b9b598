//===- TileInterpreter.cpp - executes level 2 as it stands ----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks what a kernel is called with and runs it as a strand, or as one for
// each group of its warps.
//
//===----------------------------------------------------------------------===//

#include "fi/Interpreter/TileInterpreter.h"
#include "Strand.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

bool StateSlots::write(const float *states, int64_t slot) {
  std::lock_guard<std::mutex> lock(mutex);
  auto [entry, isNew] = wasRead.try_emplace({states, slot}, false);
  if (isNew)
    return true;
  bool fine = entry->second;
  entry->second = false;
  return fine;
}

bool StateSlots::read(const float *states, int64_t slot) {
  std::lock_guard<std::mutex> lock(mutex);
  auto entry = wasRead.find({states, slot});
  if (entry == wasRead.end())
    return false;
  return entry->second = true;
}

void StateSlots::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  wasRead.clear();
}

/// Binds one argument, or says what is wrong with it.
static llvm::Error bindArgument(KernelOp kernel, unsigned number,
                                const TileArgument &argument, Strand &strand) {
  BlockArgument to = kernel.getBody().getArgument(number);
  Type type = to.getType();
  auto fail = [&](const llvm::Twine &got) {
    std::string expected;
    llvm::raw_string_ostream(expected) << type;
    return makeError(kernel, "argument " + llvm::Twine(number) + ": expected " +
                                 expected + ", but got " + got);
  };
  if (auto memory = dyn_cast<MemRefType>(type)) {
    auto *tensor = std::get_if<HostTensor>(&argument);
    if (!tensor)
      return fail("a scalar");
    if (getDType(memory.getElementType()) != tensor->getType())
      return fail("a tensor of " + getName(tensor->getType()));
    if (memory.getRank() != tensor->getRank())
      return fail("a tensor of rank " + llvm::Twine(tensor->getRank()));
    for (int64_t d = 0; d < memory.getRank(); ++d)
      if (!memory.isDynamicDim(d) && memory.getDimSize(d) != tensor->getSize(d))
        return fail("size " + llvm::Twine(tensor->getSize(d)) +
                    " of dimension " + llvm::Twine(d));
    strand.set(to, *tensor);
  } else if (isa<FloatType>(type)) {
    auto *number = std::get_if<double>(&argument);
    if (!number)
      return fail("no float");
    strand.set(to, makeFloats({roundTo(type, *number)}));
  } else {
    auto *number = std::get_if<int64_t>(&argument);
    if (!number)
      return fail("no integer");
    int64_t value = wrap(static_cast<uint64_t>(*number), getWidth(type));
    if (asSigned(value, getWidth(type)) != *number &&
        asUnsigned(value, getWidth(type)) != static_cast<uint64_t>(*number))
      return fail("the number " + llvm::Twine(*number));
    strand.set(to, makeIntegers({value}));
  }
  return llvm::Error::success();
}

/// Whether all values are such as `Elements` can hold.
static llvm::Error checkTypes(KernelOp kernel) {
  Operation *bad = nullptr;
  Type badType;
  auto check = [&](Operation *op, TypeRange types) {
    for (Type type : types) {
      Type element = getElementType(type);
      bool fits = isa<FloatType>(element)
                      ? getDType(element).has_value()
                      : !isa<IntegerType>(element) ||
                            element.getIntOrFloatBitWidth() <= 64;
      fits &= !isa<ShapedType>(type) || isa<MemRefType>(type) || isTile(type);
      if (!fits && !bad) {
        bad = op;
        badType = type;
      }
    }
  };
  check(kernel, kernel.getArgumentTypes());
  kernel.getBody().walk(
      [&](Operation *op) { check(op, op->getResultTypes()); });
  if (!bad)
    return llvm::Error::success();
  std::string text;
  llvm::raw_string_ostream(text) << badType;
  return makeError(bad, "expected scalars and tiles of f16, bf16, f32, f64 or "
                        "integers of at most 64 bits, but got " +
                            text);
}

llvm::Error fi::tile::interpretKernel(KernelOp kernel,
                                      ArrayRef<TileArgument> arguments,
                                      const fi_work &work, int64_t begin,
                                      int64_t end, StateSlots *slots) {
  if (llvm::Error error = checkTypes(kernel))
    return error;
  unsigned expected = kernel.getArgumentTypes().size() - 1;
  if (arguments.size() != expected)
    return makeError(kernel, "expected " + llvm::Twine(expected) +
                                 " arguments beside the work, but got " +
                                 llvm::Twine(arguments.size()));
  if (begin < 0 || begin > end || (begin < end && !work.items))
    return makeError(kernel, "expected a range of the work's items, but got [" +
                                 llvm::Twine(begin) + ", " + llvm::Twine(end) +
                                 ")");
  StateSlots ownSlots;
  KernelContext context = {
      kernel,
      work,
      begin,
      end,
      slots ? *slots : ownSlots,
      slots != nullptr,
      {},
      llvm::DenseMap<Operation *, std::unique_ptr<Channel>>()};
  context.shared.resize(context.getGroups());
  std::vector<std::unique_ptr<Strand>> strands;
  SmallVector<RoleOp> roles(kernel.getBody().getOps<RoleOp>());
  int64_t count = roles.empty() ? context.getGroups() : roles.size();
  for (int64_t number = 0; number < count; ++number) {
    strands.push_back(std::make_unique<Strand>(
        context, kernel.getBody().front(), roles.empty() ? number : 0,
        roles.empty() ? RoleOp() : roles[number]));
    for (auto [number, argument] : llvm::enumerate(arguments))
      if (llvm::Error error =
              bindArgument(kernel, number, argument, *strands.back()))
        return error;
    strands.back()->set(kernel.getWork(), &work);
  }
  return roles.empty() ? runStrands(context, strands)
                       : runRoles(context, strands);
}
