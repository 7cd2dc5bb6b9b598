//===- Async.h - What handlers ask of the asynchronous machine --*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mbarriers, bulk copies and wgmma: handlers decode, Machine/ does. A copy or a
// product is done at a time that the seed chooses, but never earlier than the
// rules allow it to be seen late.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_EXEC_ASYNC_H
#define FI_EMULATOR_EXEC_ASYNC_H

#include "Exec.h"

namespace fi::emulator {

/// An address operand: slot, whether it is of 64 bits, what is added.
struct AddressWords {
  uint32_t slot, wide, addend;
  uint64_t of(Warp &w, unsigned lane) const {
    return wide ? w.r64(slot)[lane] + uint64_t(int64_t(int32_t(addend)))
                : uint64_t(w.r32(slot)[lane] + addend);
  }
};

//===- mbarrier -----------------------------------------------------------===//

/// What an mbarrier instruction does beside the arrival.
struct MbarrierArrive {
  bool arrives = true, expects = false, drops = false;
  bool noComplete = false, releases = true;
};
void mbarrierInit(Warp &w, const Inst &in, uint32_t mask,
                  const uint64_t *address, const uint32_t *count);
void mbarrierInval(Warp &w, const Inst &in, uint32_t mask,
                   const uint64_t *address);
/// `state`, if not null, takes the phase before the arrival.
void mbarrierArrive(Warp &w, const Inst &in, uint32_t mask,
                    const uint64_t *address, MbarrierArrive what,
                    const uint32_t *count, const uint32_t *bytes,
                    uint64_t *state);
void mbarrierComplete(Warp &w, const Inst &in, uint32_t mask,
                      const uint64_t *address, const uint32_t *bytes);
/// False: the warp waits, and the instruction is repeated. `values`: parities
/// or states.
bool mbarrierTest(Warp &w, const Inst &in, uint32_t mask,
                  const uint64_t *address, const uint64_t *values, bool parity,
                  bool waits, bool acquires, uint32_t &done);
uint32_t mbarrierPending(uint64_t state);
/// cp.async.mbarrier.arrive: an arrival when the copies of the lanes so far are
/// done.
void mbarrierAfterCopies(Warp &w, const Inst &in, uint32_t mask,
                         const uint64_t *address, bool noinc);

//===- Bulk copies --------------------------------------------------------===//

enum class BulkKind : uint32_t {
  Load,   // global to shared, with an mbarrier
  Move,   // shared to shared, with an mbarrier
  Store,  // shared to global, in a group
  Reduce, // the same, with an operation
  Prefetch,
};
enum class BulkOp : uint32_t { None, Add, Min, Max, Inc, Dec, And, Or, Xor };

/// The operands of a bulk copy as they lie behind Inst::list.
struct BulkWords {
  BulkKind kind;
  BulkOp op;
  uint32_t type; // Type, of reductions without a tensor map
  uint32_t rank; // 0: no tensor map
  AddressWords shared, global, barrier;
  uint32_t size; // slot, without a tensor map
  uint32_t coords[5];
  uint32_t multicast; // slot + 1 of the mask of CTAs; 0: none
};
bool bulkReductionExists(BulkOp op, Type type);
void reduceBytes(BulkOp op, Type type, uint8_t *to, const uint8_t *from,
                 uint32_t bytes);
void bulkCopy(Warp &w, const Inst &in, uint32_t mask, const BulkWords &words);
void bulkCommit(Warp &w, uint32_t mask);
void bulkWait(Warp &w, const Inst &in, uint32_t mask, uint32_t keep,
              bool readsOnly);
void fenceProxy(Warp &w, uint32_t mask);

/// The fields of a tensor map that tensormap.replace changes.
enum class MapField : uint32_t {
  Address,
  Rank,
  Box,
  Dim,
  Stride,
  ElementStride,
  Type,
  Interleave,
  Swizzle,
  Fill,
};
/// `value`: slot.
struct ReplaceWords {
  MapField field;
  uint32_t ordinal, value, wide;
  AddressWords at;
};
void tensorMapReplace(Warp &w, const Inst &in, uint32_t mask,
                      const ReplaceWords &words);
/// tensormap.cp_fenceproxy: 128 bytes from shared to global memory.
void tensorMapCopy(Warp &w, const Inst &in, uint32_t mask,
                   const AddressWords &to, const AddressWords &from);

//===- wgmma --------------------------------------------------------------===//

/// Where the elements of a matrix in shared memory lie: by its descriptor.
struct MatrixLayout {
  uint32_t start = 0;    // address of the first element
  uint32_t swizzle = 0;  // the bits of the address that are changed
  uint32_t elements = 8; // of 16 bytes
  bool alongK = true;    // elements of 16 bytes follow each other along k
  uint32_t chunks = 1;   // of 16 bytes that follow each other in a row
  uint32_t pitch = 16;   // between rows of a core matrix
  uint32_t group = 0;    // between groups of eight rows
  uint32_t next = 0;     // between sequences of `chunks`

  /// The address of the 16 bytes with element `element` of row `row`, where
  /// rows are m or n with `alongK`, and k without.
  uint32_t at(uint32_t row, uint32_t element) const {
    uint32_t c = element / elements;
    uint32_t a = start + row % 8 * pitch + row / 8 * group + c % chunks * 16 +
                 c / chunks * next;
    return a ^ ((a >> 3) & swizzle);
  }
};
/// False: `error` says what is wrong.
bool matrixLayout(uint64_t descriptor, uint32_t elementBytes, bool transposed,
                  MatrixLayout &out, const char *&error);

constexpr uint32_t wgmmaMostN = 256;

/// A product of a warp, as it was issued: m64, of which this warp has sixteen
/// rows.
struct WgmmaOp {
  uint32_t inst = 0, group = 0;
  uint32_t rank = 0; // the warp within its warpgroup
  bool scaleD = false;
  bool negative = false;
  MatrixLayout a, b;
  uint64_t descriptors[2] = {0, 0};
  /// A of registers.
  uint32_t registersA[4][32];
  /// Number of the product in its warpgroup.
  uint64_t serial = 0;
};
struct WgmmaForm {
  uint32_t n, k;
  uint8_t typeA, typeB; // of the handlers
  uint8_t bytes;        // of an element
  bool halfD, saturate, fromRegisters;
  bool transposeA, transposeB;
  /// Slots behind Inst::list: d, then a.
  uint32_t countD;
  void (*compute)(Warp &, const Inst &, const WgmmaForm &, const WgmmaOp &);
};
/// What is wrong with a product; ends the launch.
void wgmmaRefuse(Warp &w, const Inst &in, const std::string &message);
void wgmmaIssue(Warp &w, const Inst &in, const WgmmaForm &form, WgmmaOp &op);
void wgmmaFence(Warp &w, const Inst &in);
void wgmmaCommit(Warp &w, const Inst &in);
void wgmmaWait(Warp &w, const Inst &in, uint32_t keep);
/// Floats or ints of a matrix B, made once for the four warps of a warpgroup.
/// `fresh`: it is to be filled.
uint32_t *wgmmaPanel(Warp &w, const WgmmaOp &op, size_t words, bool &fresh);
/// The warp ends.
void wgmmaEnd(Warp &w);
const uint8_t *sharedBytesOf(Warp &w);
void setMaxRegisters(Warp &w, const Inst &in, uint32_t count, bool increase);

} // namespace fi::emulator

#endif // FI_EMULATOR_EXEC_ASYNC_H
