//===- Manifest.h - What a manifest says, checked --------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manifest (docs/abi.md) as plain data: names resolved to indices, every
// number in range, so that the planner needs no further checks of it.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_PACKAGE_MANIFEST_H
#define FI_RUNTIME_PACKAGE_MANIFEST_H

#include "fi-runtime/fi_runtime.h"
#include "fi/ABI/KernelABI.h"

#include <string>
#include <vector>

namespace fi::runtime {

/// Tensors of higher rank are refused.
constexpr int32_t maxRank = 8;
/// A size that is known at run time only.
constexpr int64_t unknownSize = -1;
/// No argument.
constexpr int32_t none = -1;

struct Argument {
  std::string name;
  fi_group group = FI_GROUP_RUN;
  fi_argument_kind kind = FI_KIND_TENSOR;
  int32_t dtype = FI_F32;
  std::vector<int64_t> shape;
  int32_t indexInGroup = 0;
  bool sorted = false; // plan tensors: along the last dimension
  int64_t align = 1;   // bytes, of the data and of all strides but the last
};

/// How many rows something has: as many as a run tensor, as an integer of the
/// plan says, or a number.
struct RowSource {
  int32_t argument = none;     // index into arguments
  int64_t count = unknownSize; // without one
};

/// A result or a temporary.
struct Output {
  std::string name;
  int32_t dtype = FI_F32;
  std::vector<int64_t> shape;
  RowSource rowsOf;
  int64_t align = 1;
};

/// A buffer of a stage, by what it names.
struct BufferRef {
  enum Kind { ArgumentBuffer, ResultBuffer, TemporaryBuffer } kind;
  int32_t index;
};

enum class ViewKind { Paged, Dense, Ragged };

/// The tables of a view. Indices are into arguments; `none` where absent.
struct View {
  ViewKind kind = ViewKind::Ragged;
  int32_t keys = none, values = none;
  int32_t tail = none;     // the last columns of keys, where they lie apart
  bool headsFirst = false; // HND
  bool hasHeads = true;    // ND: pools have no dimension of heads
  bool fused = false;      // one pool [pages, 2, ...]
  int64_t page = unknownSize;
  int64_t heads = 0;
  int32_t indptr = none, pages = none, last = none;
  int32_t lengths = none, origin = none;
  int32_t valuePages = none; // that of values, where it is not `pages`
  /// Block-sparse views: rows and columns of a block, 0 for others, and the
  /// lists of blocks of columns.
  int64_t blockRows = 0, blockColumns = 0;
  int32_t rowIndptr = none, columns = none;
  /// Scales, one of each page, or one or several of each token, and of each
  /// head.
  struct Scales {
    int32_t argument;
    bool perToken, ofValues;
  };
  std::vector<Scales> scales;
  /// Views with equal tables share one analysis: the stage that has it.
  int32_t sharedTables = none;

  bool isPageTable(int32_t argument) const {
    return argument != none && (argument == pages || argument == valuePages);
  }
  int32_t tokenDim() const { return firstDim() + (headsFirst ? 1 : 0); }
  int32_t headDim() const { return firstDim() + (headsFirst ? 0 : 1); }

private:
  /// The first of the dimensions of tokens and heads.
  int32_t firstDim() const {
    return kind == ViewKind::Ragged ? 0 : fused ? 2 : 1;
  }
};

struct Cost {
  double item = 0, tile = 0, tileRow = 0, slotRow = 0, meeting = 0;
};

/// A parameter of a kernel that describes one of its stage's buffers, for
/// copies of boxes of it by the hardware.
struct TensorMapRecipe {
  int32_t buffer = 0; // of the stage
  int32_t rank = 0, dtype = 0;
  size_t slot = 0; // the buffer's first among the stage's
  int32_t swizzle = 0;
  int32_t box[5] = {1, 1, 1, 1, 1}; // by the buffer's dimensions
};
/// Slots of 8 bytes of such a parameter; it begins at a multiple of 8 of them.
constexpr size_t tensorMapSlots = 16, tensorMapAlignment = 8;

/// The time stamps that a kernel of a profile build writes.
struct ProfileShape {
  enum Kind { Phase, Moment, End };
  struct Mark {
    Kind kind = Phase;
    std::string name; // empty for an end
  };
  struct Role {
    std::string name; // empty where all warps have the same program
    int32_t warps = 1;
  };
  std::vector<Mark> marks; // none: the kernel writes none
  std::vector<Role> roles; // their warps are those of a CTA, in order
  /// Of a warp, at most, about: for each launch, item, and tile of keys.
  int64_t perLaunch = 0, perItem = 0, perTile = 0;

  int32_t warps() const {
    int32_t count = 0;
    for (const Role &role : roles)
      count += role.warps;
    return count;
  }
};

/// How a kernel of a device is launched.
struct LaunchShape {
  int32_t threads = 0;   // of a CTA
  int64_t shared = 0;    // dynamic shared memory of a CTA, in bytes
  int32_t ctasPerSM = 0; // 0: as the driver says
  /// As many CTAs as the device holds at once, each with several items, instead
  /// of one per item.
  bool persistent = false;
  /// It passes over items without rows, as graph-safe plans have them.
  bool emptyItems = false;
  /// It waits for the launch in front of it itself, and may begin before.
  bool overlaps = false;
  /// It is checked: it has the log of faults as a parameter.
  bool faults = false;
  /// It has the log of time stamps as a parameter after that.
  ProfileShape profile;
  bool isProfiled() const { return !profile.marks.empty(); }
  /// After all other parameters.
  std::vector<TensorMapRecipe> tensorMaps;
};

struct Merge {
  std::string symbol;
  int64_t tileRows = 0;
  int64_t scratch = 0;
  Cost cost;
  LaunchShape launch;
  fi_cpu_kernel kernel = nullptr;
};

struct Body {
  std::string symbol;
  int64_t tileRows = 0;
  int64_t tileKeys = 1;
  int64_t maxRows = unknownSize; // unknown: unbounded
  int64_t scratch = 0;
  Cost cost;
  int32_t merge = none; // index into Stage::merges
  /// Devices: whoever is the last to finish a piece of a tile merges it.
  bool mergesItself = false;
  /// As many pieces meet first, where there are more; 0: all meet at once.
  int64_t mergeFanIn = 0;
  LaunchShape launch;
  fi_cpu_kernel kernel = nullptr;

  bool canSplit() const { return merge != none || mergesItself; }
};

/// A bound of the mask, as a tree in one array (children before parents are not
/// required; `root` of a bound is an index).
struct Expression {
  enum Op {
    Constant,
    QueryPosition,
    Request,
    QueryHead,
    KVHead,
    KVLength,
    QueryLength,
    Scalar,
    Load,
    First,
    Add,
    Sub,
    Mul,
    Min,
    Max,
    FloorDiv,
    CeilDiv
  } op = Constant;
  int64_t constant = 0;           // Constant
  int32_t argument = none;        // Scalar, Load, First: index into arguments
  int32_t operands[maxRank] = {}; // indices of expressions
  int32_t operandCount = 0;
};

struct MaskTerm {
  std::vector<int32_t> low, high; // roots, inclusive bounds of the position
  bool exact = true;
};

struct Mask {
  bool present = false;
  std::vector<Expression> expressions;
  std::vector<MaskTerm> terms;
  bool usesHead = false;     // bounds differ between heads
  bool usesPosition = false; // bounds differ between rows
};

struct SplitPolicy {
  fi_split_policy policy = FI_SPLIT_NONE;
  int64_t keys = 0;
};

enum class StageOp { Attention, Rows, Append };

struct Stage {
  StageOp op = StageOp::Rows;
  std::string name;
  int32_t query = none;           // attention: argument, or whose rows it has
  bool queryIsComputed = false;   // attention: the latter
  int32_t queryTail = none;       // attention: argument with its last columns
  int32_t rows = none;            // attention, append: argument (indptr)
  int32_t positions = none;       // attention: argument
  int32_t outs[2] = {none, none}; // attention: pools of output and statistic
  RowSource rowsOf;               // rows
  std::vector<int32_t> withRows;  // rows: arguments that have as many
  std::vector<BufferRef> whole;   // rows: results, temporaries with other rows
  std::vector<int32_t> newTokens; // append: run arguments with the new rows
  View view;
  bool readsWhole(const BufferRef &buffer) const {
    for (const BufferRef &one : whole)
      if (one.kind == buffer.kind && one.index == buffer.index)
        return true;
    return false;
  }
  int64_t queryHeads = 1, kvHeads = 1; // rows: kvHeads is the heads
  int64_t group = 1;
  int64_t qkDim = 0, voDim = 0;
  std::vector<BufferRef> buffers;
  std::vector<Body> bodies;
  std::vector<Merge> merges;
  SplitPolicy split;
  Mask mask;

  bool canSplit() const {
    for (const Body &body : bodies)
      if (body.canSplit())
        return true;
    return false;
  }
};

/// Why kernels do without features that their chip has.
struct UnusedFeatures {
  std::vector<std::string> features;
  std::string why;
  /// Whether they have nothing for these to do.
  bool idle = false;
  std::vector<std::string> kernels; // symbols
};

struct Manifest {
  std::string program, compiler;
  std::string targetKind, targetCpu;
  int64_t vectorBits = 0;
  /// What the machine must have: by LLVM's names of CPU features, or by those
  /// of the table of chips.
  std::vector<std::string> features;
  // Devices: the chip ("sm_90a"), the version of the PTX as 10 * major + minor
  // (0: not stated), and the chip of the machine code ("": there is none).
  std::string chip, cubinChip;
  int32_t ptxVersion = 0;
  std::vector<UnusedFeatures> unused;
  std::vector<Argument> arguments;
  std::vector<int32_t> planArguments, runArguments; // indices into arguments
  std::vector<Output> results, temporaries;
  std::vector<Stage> stages;

  /// The result or temporary that a buffer is; null for an argument.
  const Output *findOutput(const BufferRef &buffer) const {
    switch (buffer.kind) {
    case BufferRef::ResultBuffer:
      return &results[buffer.index];
    case BufferRef::TemporaryBuffer:
      return &temporaries[buffer.index];
    case BufferRef::ArgumentBuffer:
      break;
    }
    return nullptr;
  }

  /// Whether some kernel of a profile build writes time stamps.
  bool isProfiled() const {
    for (const Stage &stage : stages) {
      for (const Body &body : stage.bodies)
        if (body.launch.isProfiled())
          return true;
      for (const Merge &merge : stage.merges)
        if (merge.launch.isProfiled())
          return true;
    }
    return false;
  }

  /// Its kernels are launched on a device, not called.
  bool onDevice() const { return targetKind == "cuda"; }
};

/// One parameter slot of a tensor of rank r takes 1 + 2r.
inline size_t tensorSlots(int32_t rank) { return 1 + 2 * size_t(rank); }

/// Parameter slots of a buffer, and of all of a stage.
size_t bufferSlots(const Manifest &manifest, const BufferRef &buffer);
size_t stageSlots(const Manifest &manifest, const Stage &stage);

/// Reads and checks a manifest.
fi_status parseManifest(const char *text, size_t length, Manifest &manifest);

/// The chips of a manifest of a package for several targets; none of any other
/// manifest.
fi_status readTargets(const char *text, size_t length,
                      std::vector<std::string> &chips);

} // namespace fi::runtime

#endif // FI_RUNTIME_PACKAGE_MANIFEST_H
