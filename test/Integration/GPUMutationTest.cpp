//===- GPUMutationTest.cpp - broken kernels of fi are reported ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes the PTX of a prefill and of a decode program, which are right, breaks
// one statement at a time, and looks at what the emulator says. A report must
// name the place in the PTX and in the program. What is not reported must have
// been without effect in this batch (a barrier for the next item of a CTA that
// has one, a path not taken): then results must be right, and how many may be
// so is counted. A wrong result without a report is a failure.
//
// The same is done with what lets warps that copy and warpgroups that multiply
// meet, in the placed kernel.
//
//===----------------------------------------------------------------------===//

#include "PTXMutations.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace fi;
using namespace fi::test;

namespace {

struct Program {
  const char *name;
  const char *schedule;
  std::vector<Request> requests;
  Planned plan;
};
void PrintTo(const Program &program, std::ostream *os) { *os << program.name; }

class GPUMutations : public PTXMutations,
                     public testing::WithParamInterface<Program> {
protected:
  void SetUp() override {
    AttentionText text;
    text.target = "#fi.target<sm_80>";
    text.query = text.keys = text.values = text.output = "f16";
    text.kvHeads = 2;
    text.group = 2;
    text.clauses = std::string("mask(#fi.causal) schedules([") +
                   GetParam().schedule + "])";
    compile(text.get(), GetParam().requests, GetParam().plan);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Programs, GPUMutations,
    testing::Values(
        Program{"prefill",
                "#fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, "
                "stages = 2, lanes = 4>",
                {{70, 130}, {40, 40}},
                {2, SplitChoice::None}},
        Program{"decode",
                "#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, "
                "stages = 2, lanes = 4>",
                {{1, 300}, {1, 200}},
                {4, SplitChoice::Fixed, 64}},
        Program{"groups",
                "#fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2, "
                "key_warps = 2, stages = 2, lanes = 4>",
                {{1, 1300}, {2, 200}},
                {4, SplitChoice::Fixed, 32}}),
    [](const auto &info) { return std::string(info.param.name); });

TEST_P(GPUMutations, Barriers) {
  bool isDecode = GetParam().requests[0].rows == 1;
  expectReports("bar.sync", isDecode ? 5 : 2,
                {"race", "uninitialized memory", "pending copy"}, nothing);
}
TEST_P(GPUMutations, Waits) {
  bool isDecode = GetParam().requests[0].rows == 1;
  expectReports("cp.async.wait_group", isDecode ? 4 : 2, {"pending copy"},
                nothing);
}
TEST_P(GPUMutations, ShiftedCopies) {
  expectReports(
      "cp.async.cg.shared.global [", 8,
      {"race", "uninitialized memory", "pending copy", "out-of-bounds"},
      // The next 16 bytes: another row's, or behind the end.
      [](llvm::StringRef s) { return shift(s, s.find(']'), 16); },
      /*mayBeWrong=*/true);
}
TEST_P(GPUMutations, ShiftedLoads) {
  expectReports("ldmatrix", 8, {"misaligned", "out-of-bounds"},
                [](llvm::StringRef s) { return shift(s, s.rfind(']'), 2); });
}
TEST_P(GPUMutations, OrderOfArrivals) {
  bool isDecode = GetParam().requests[0].rows == 1;
  if (!isDecode)
    return; // nothing is split
  for (const char *order : {"relaxed", "acquire", "release"})
    expectReports("atom.acq_rel", 1, {"race"}, [&](llvm::StringRef s) {
      size_t at = s.find("acq_rel");
      return (s.substr(0, at) + order + s.substr(at + strlen("acq_rel"))).str();
    });
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

class GPURoleMutations : public testing::Test {
protected:
  static std::string text(int64_t dim, int64_t tma) {
    AttentionText text;
    text.target = "#fi.target<sm_90a>";
    text.query = text.keys = text.values = text.output = "f16";
    text.kvHeads = 1;
    text.group = 2;
    text.keyDim = text.valueDim = dim;
    text.clauses =
        "mask(#fi.causal) schedules([#fi.schedule<tile_rows = 64, tile_keys = "
        "32, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1, "
        "tma = " +
        std::to_string(tma) + ", lanes = 4>])";
    return text.get();
  }

  /// What runs say of a program whose placed kernel was changed, and its PTX
  /// then; empty if results are right by each seed.
  static std::string
  failureOf(llvm::function_ref<void(mlir::Operation *)> change,
            llvm::function_ref<void(std::string &)> changePTX = nullptr,
            int64_t dim = 64, int64_t tma = 0) {
    std::string all;
    for (uint64_t seed : {0, 1, 2}) {
      testing::TestPartResultArray failures;
      {
        testing::ScopedFakeTestPartResultReporter reporter(
            testing::ScopedFakeTestPartResultReporter::
                INTERCEPT_ONLY_CURRENT_THREAD,
            &failures);
        // Whole and masked tiles, and a second item for each worker.
        Case(text(dim, tma), {{40, 140}, {33, 70}})
            .on([&](mlir::ModuleOp module)
                    -> llvm::Expected<std::unique_ptr<Executor>> {
              auto made = compileForEmulator(module, change);
              if (!made)
                return made.takeError();
              if (changePTX)
                changePTX(made->ptx);
              return loadIntoEmulator(*made, "sm_90a", seed);
            })
            .check({{1, SplitChoice::None}});
      }
      for (int i = 0; i < failures.size(); ++i)
        all += failures.GetTestPartResult(i).message();
      if (!all.empty())
        break;
    }
    return all;
  }

  /// An op and where it is.
  static std::string describe(mlir::Operation *op) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << *op << " of role " << op->getParentOfType<tile::RoleOp>().getName();
    if (auto keys = llvm::dyn_cast<tile::ForKeysOp>(op->getParentOp())) {
      os << ", " << tile::stringifyPart(keys.getPart());
      if (std::optional<tile::Selection> selection = keys.getSelection())
        os << " " << tile::stringifySelection(*selection);
    }
    return text;
  }

  /// Changes each op of a type on its own. All but `harmless` of them must be
  /// reported, in one of these words.
  template <typename Op>
  void expectReports(llvm::ArrayRef<const char *> words, unsigned harmless,
                     llvm::function_ref<bool(Op)> breaks) {
    unsigned changed = 0, silent = 0;
    std::string unseen;
    for (unsigned k = 0;; ++k) {
      std::string what;
      unsigned count = 0;
      bool isChanged = false;
      std::string failure = failureOf([&](mlir::Operation *kernel) {
        llvm::SmallVector<Op> ops;
        kernel->walk([&](Op op) { ops.push_back(op); });
        if (ops.empty())
          return;
        count = ops.size();
        if (k >= count)
          return;
        what = describe(ops[k]);
        isChanged = breaks(ops[k]);
      });
      if (k >= count)
        break;
      if (!isChanged)
        continue;
      ++changed;
      if (failure.empty()) {
        ++silent;
        unseen += "\n" + what;
      }
      SCOPED_TRACE(what + ": " + failure);
      EXPECT_TRUE(failure.empty() || llvm::any_of(words, [&](const char *word) {
                    return llvm::StringRef(failure).contains(word);
                  }));
    }
    EXPECT_GE(changed, 3u);
    EXPECT_LE(silent, harmless) << "of " << changed << ":" << unseen;
  }
};

TEST_F(GPURoleMutations, AsItIs) { EXPECT_EQ(failureOf(nullptr), ""); }

/// Queries, and values of the tile before, were copied before keys that are
/// waited for, and so are there with these; and a CTA has one item here, for
/// which the buffer of the queries is empty.
TEST_F(GPURoleMutations, Awaits) {
  expectReports<tile::AwaitOp>({"race", "pending copy", "deadlock",
                                "mbarrier fault", "uninitialized memory",
                                "missing proxy fence",
                                "expected a wait for the buffer"},
                               /*harmless=*/4, [](tile::AwaitOp op) {
                                 op.erase();
                                 return true;
                               });
}

/// That of the queries may be over, or not yet, as the keys' are.
TEST_F(GPURoleMutations, Phases) {
  expectReports<tile::AwaitOp>(
      {"race", "pending copy", "deadlock", "mbarrier fault",
       "uninitialized memory", "missing proxy fence"},
      /*harmless=*/1, [](tile::AwaitOp op) {
        mlir::OpBuilder b(op);
        mlir::Value one =
            mlir::arith::ConstantIntOp::create(b, op.getLoc(), 1, 32);
        op.getPhaseMutable().assign(
            mlir::arith::XOrIOp::create(b, op.getLoc(), op.getPhase(), one));
        return true;
      });
}

/// Nobody waits for the last buffers of an item that is the last one.
TEST_F(GPURoleMutations, Arrivals) {
  expectReports<tile::ArriveOp>({"deadlock", "to be said to be full"},
                                /*harmless=*/3, [](tile::ArriveOp op) {
                                  op.erase();
                                  return true;
                                });
}

/// A buffer is given back while a product reads it. Those of the last tiles are
/// not filled again, and what is filled again after the product was waited for
/// all the same is found by the replay of roles alone (TILE29).
TEST_F(GPURoleMutations, ReleasesBeforeTheWait) {
  expectReports<tile::ArriveOp>({"race", "pending copy", "wgmma fault"},
                                /*harmless=*/3, [](tile::ArriveOp op) {
                                  for (mlir::Operation *other =
                                           op->getPrevNode();
                                       other; other = other->getPrevNode())
                                    if (llvm::isa<tile::WaitOp>(other)) {
                                      op->moveBefore(other);
                                      return true;
                                    }
                                  return false;
                                });
}

/// What was copied is not fenced from the products.
TEST_F(GPURoleMutations, Fences) {
  std::string failure = failureOf(nullptr, [](std::string &ptx) {
    size_t at;
    while ((at = ptx.find("fence.proxy.async")) != std::string::npos)
      ptx.erase(at, ptx.find(';', at) + 1 - at);
  });
  EXPECT_NE(failure.find("missing proxy fence"), std::string::npos) << failure;
}

/// Boxes that count other bytes than they have, lie elsewhere, or are not
/// there.
TEST_F(GPURoleMutations, TensorCopies) {
  auto withBoxes = [](llvm::function_ref<void(std::string &)> change) {
    return failureOf(nullptr, change, /*dim=*/128, /*tma=*/1);
  };
  EXPECT_EQ(withBoxes([](std::string &) {}), "");
  // Each statement of a kind on its own, in the order of the text.
  auto expectEach = [&](llvm::StringRef begin, unsigned harmless,
                        llvm::ArrayRef<const char *> words,
                        llvm::function_ref<std::string(llvm::StringRef)> make) {
    unsigned count = 0, silent = 0;
    for (unsigned k = 0;; ++k) {
      bool isThere = false;
      std::string failure = withBoxes([&](std::string &ptx) {
        size_t at = 0;
        for (unsigned i = 0;
             (at = ptx.find(begin.str(), at)) != std::string::npos; ++i, ++at)
          if (i == k) {
            size_t end = ptx.find(';', at) + 1;
            ptx.replace(at, end - at, make(ptx.substr(at, end - at)));
            isThere = true;
            return;
          }
      });
      if (!isThere)
        break;
      ++count;
      silent += failure.empty();
      EXPECT_TRUE(failure.empty() ||
                  llvm::any_of(words,
                               [&](const char *word) {
                                 return llvm::StringRef(failure).contains(word);
                               }))
          << begin.str() << " " << k << ": " << failure;
    }
    EXPECT_GE(count, 3u);
    EXPECT_LE(silent, harmless) << "of " << count << ": " << begin.str();
  };
  expectEach("cp.async.bulk.tensor", 0, {"deadlock"},
             [](llvm::StringRef) { return ""; });
  expectEach("cp.async.bulk.tensor", 0,
             {"misaligned", "race", "bounds", "fault", "pending copy"},
             [](llvm::StringRef s) { return shift(s, s.find(']'), 64); });
  expectEach("mbarrier.arrive.expect_tx", 0,
             {"race", "pending copy", "mbarrier fault", "deadlock",
              "uninitialized memory"},
             [](llvm::StringRef s) {
               return (s.substr(0, s.rfind(',')) + ", 128;").str();
             });
}

/// Products read other bytes than those of their matrix: strides of their
/// descriptors are constants, which hold the swizzle in bit 62.
TEST_F(GPURoleMutations, Strides) {
  for (int shift : {16, 32}) {
    unsigned found = 0;
    auto change = [&](std::string &ptx) {
      const std::string begin = "46116862";
      for (size_t at = 0; (at = ptx.find(begin, at)) != std::string::npos;) {
        size_t end = ptx.find_first_not_of("0123456789", at);
        uint64_t was = std::stoull(ptx.substr(at, end - at));
        // Half of it: of blocks of 8 rows, or of panels.
        uint64_t stride = was >> shift & 0x3fff;
        was ^= (stride ^ stride / 2) << shift;
        std::string now = std::to_string(was);
        ptx.replace(at, end - at, now);
        at += now.size();
        ++found;
      }
    };
    // Rows of two panels.
    EXPECT_NE(failureOf(nullptr, change, /*dim=*/128), "");
    EXPECT_GT(found, 0u);
  }
}

} // namespace
