//===- CanonicalizeTest.cpp - the compiler's positions and masks ----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference gives masks and scores a meaning of its own; the compiler turns
// them into regions. On random programs and batches both mean the same: the
// program before fi-canonicalize and the one behind it see the same keys and
// have the same results.
//
//===----------------------------------------------------------------------===//

#include "ReferenceTesting.h"
#include "fi/Dialect/FI/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace fi;
using namespace fi::test;

namespace {

class RandomCase {
public:
  explicit RandomCase(unsigned seed) : generator(seed) {}

  int64_t below(int64_t limit) { return generator() % limit; }

  std::string mask(int depth) {
    switch (below(depth > 0 ? 4 : 3)) {
    case 0:
      return "#fi.causal";
    case 1:
      return "#fi.window<left = " + std::to_string(below(6)) + ">";
    case 2:
      return "#fi.window<left = " + std::to_string(below(6)) +
             ", right = " + std::to_string(below(4)) + ">";
    default:
      return "#fi.any<" + mask(depth - 1) + ", " + mask(depth - 1) + ">";
    }
  }

  std::string clauses() {
    std::string text;
    if (below(2))
      text += " score(#fi.softcap<" + std::to_string(1 + below(3)) + ".5>)";
    if (int64_t count = below(4)) {
      text += " mask(" + mask(2);
      while (--count)
        text += ", " + mask(1);
      text += ")";
    }
    if (below(2))
      text +=
          R"( mask(%r: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %n = arith.constant )" +
          std::to_string(2 + below(4)) + R"( : index
        %d = arith.subi %qp, %kp : index
        %m = arith.remsi %d, %n : index
        %z = arith.constant 0 : index
        %v = arith.cmpi ne, %m, %z : index
        fi.yield %v : i1
      })";
    return text;
  }

  /// `requests` requests; lengths of pages of 3 keys, rows and origins.
  std::vector<HostValue> batch() {
    int64_t requests = below(4);
    std::vector<int64_t> rows = {below(2)}, indptr = {below(3)}, last, origin;
    for (int64_t r = 0; r < requests; ++r) {
      rows.push_back(rows.back() + below(5));
      indptr.push_back(indptr.back() + below(4));
      last.push_back(1 + below(3));
      origin.push_back(below(2) ? 0 : below(20) - 10);
    }
    std::vector<int64_t> pages;
    for (int64_t i = 0; i < indptr.back() + below(2); ++i)
      pages.push_back(below(7));
    return {ints(rows),
            ints(indptr),
            ints(pages),
            ints(last),
            ints(origin),
            random({rows.back() + below(2), 2, 8}, generator()),
            random({7, 3, 1, 8}, generator()),
            random({7, 3, 1, 8}, generator())};
  }

private:
  std::mt19937 generator;
};

} // namespace

TEST(ReferenceProperty, canonicalProgramsMeanTheSame) {
  int64_t masked = 0, seen = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomCase random(seed);
    std::string text = R"(
!kv = !fi.paged_kv<3x1x8xf32, NHD>
!pool = tensor<?x3x1x8xf32>
!ix = tensor<?xi32>
!q = tensor<?x2x8xf32>
!l = tensor<?x2xf32>
fi.program @p plan(%qo: !ix, %ip: !ix, %pg: !ix, %last: !ix, %first: !ix)
    run(%q: !q, %k: !pool, %v: !pool) -> (!q, !l) {
  %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) origin(%first : !ix)
      : !pool, !pool -> !kv
  %o, %l = fi.attention %q rows(%qo : !ix) over %kv scale(0.5))" +
                       random.clauses() + R"( : !q over !kv -> !q, !l
  fi.return %o, %l : !q, !l
})";
    Program original(text), canonical(text);
    mlir::PassManager passes(canonical.program.getContext(),
                             mlir::ModuleOp::getOperationName());
    passes.addNestedPass<ProgramOp>(createFICanonicalizePass());
    ASSERT_TRUE(mlir::succeeded(
        passes.run(canonical.program->getParentOfType<mlir::ModuleOp>())))
        << text;
    std::vector<HostValue> batch = random.batch();
    std::vector<HostTensor> first, second;
    ReferenceOptions options;
    options.visibleKeys = &first;
    std::vector<HostTensor> wanted = original.run(batch, options);
    options.visibleKeys = &second;
    std::vector<HostTensor> got = canonical.run(batch, options);
    ASSERT_EQ(integers(first[0]), integers(second[0])) << seed << text;
    expectNear(got[0], wanted[0], 1e-6);
    expectNear(got[1], wanted[1], 1e-5);
    for (int64_t count : integers(first[0])) {
      masked += count == 0;
      seen += count > 0;
    }
  }
  // The cases are not trivial.
  EXPECT_GT(masked, 200);
  EXPECT_GT(seen, 1000);
}
