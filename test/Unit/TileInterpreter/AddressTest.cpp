//===- AddressTest.cpp - addresses of keys and values against the compiler's -//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interpreter's own addresses against the arithmetic that the layouts
// build, which is interpreted as well: random layouts, strides and tables, with
// offsets far beyond 32 bits.
//
//===----------------------------------------------------------------------===//

#include "TileTesting.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

class AddressTest : public TileTest {
protected:
  /// A kernel (pages, strides..., head, key, table_begin, out) that stores what
  /// `buildRowOffset` computes.
  void build(KVViewTypeInterface type, KVPart part) {
    unsigned rank = type.getPoolRank();
    OpBuilder b(&context);
    Location loc = b.getUnknownLoc();
    module = ModuleOp::create(loc);
    b.setInsertionPointToStart(module->getBody());
    Type index = b.getIndexType();
    SmallVector<Type> types = {
        MemRefType::get({ShapedType::kDynamic}, type.getIndexType())};
    types.append(rank + 3, index);
    types.push_back(MemRefType::get({ShapedType::kDynamic, 1}, b.getI64Type()));
    types.push_back(WorkType::get(&context));
    OperationState state(loc, KernelOp::getOperationName());
    state.addAttribute("sym_name", b.getStringAttr("address"));
    state.addAttribute("function_type",
                       TypeAttr::get(b.getFunctionType(types, {})));
    state.addAttribute("schedule",
                       ScheduleAttr::get(&context, 8, 16, 4, 1, 2, 0, 0));
    Block &body = state.addRegion()->emplaceBlock();
    body.addArguments(types, SmallVector<Location>(types.size(), loc));
    auto kernel = cast<KernelOp>(b.create(state));
    b.setInsertionPointToStart(&kernel.getBody().front());
    auto arguments = kernel.getBody().front().getArguments();
    SmallVector<Value> strides(arguments.slice(1, rank));
    Value pageSize;
    if (type.getPageSize() > 0)
      pageSize = arith::ConstantIndexOp::create(b, loc, type.getPageSize());
    auto lookup = [&](Value entry) -> Value {
      Value page = GatherOp::create(b, loc, type.getIndexType(), arguments[0],
                                    ValueRange(entry));
      return arith::IndexCastOp::create(b, loc, index, page);
    };
    KVRowAddress address;
    address.strides = strides;
    address.part = part;
    address.head = arguments[rank + 1];
    address.key = arguments[rank + 2];
    address.tableBegin = arguments[rank + 3];
    address.pageSize = pageSize;
    address.lookup = lookup;
    Value offset = type.buildRowOffset(b, loc, address);
    Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), offset);
    Value tile = tensor::SplatOp::create(
        b, loc, number, RankedTensorType::get({8, 1}, b.getI64Type()));
    auto loop = ForItemsOp::create(b, loc, kernel.getWork());
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&loop.getBody().front());
      StoreRowsOp::create(b, loc, tile, arguments[rank + 4], loop.getItem(), 1,
                          Value());
    }
    tile::ReturnOp::create(b, loc);
    ASSERT_TRUE(succeeded(module->verify()));
  }

  int64_t interpret(const HostTensor &pages, ArrayRef<int64_t> strides,
                    int64_t head, int64_t key, int64_t tableBegin) {
    HostTensor out = filled({1, 1}, 0, DType::I64);
    std::vector<TileArgument> arguments = {pages};
    arguments.insert(arguments.end(), strides.begin(), strides.end());
    arguments.insert(arguments.end(), {head, key, tableBegin});
    arguments.push_back(out);
    TestWork work;
    work.add();
    EXPECT_EQ(run("address", arguments, work), "");
    return out.getInteger({0, 0});
  }
};

TEST_F(AddressTest, MatchesTheLayoutsArithmetic) {
  Random random(2026);
  Type f32 = Float32Type::get(&context);
  int64_t beyond32 = 0;
  for (int round = 0; round < 60; ++round) {
    int64_t page = 1 + random.below(40), heads = 1 + random.below(8);
    auto order = random.below(2) ? HeadOrder::NHD : HeadOrder::HND;
    Type indexType = IntegerType::get(&context, random.below(2) ? 32 : 64);
    enum { Paged, Fused, TwoTables, Latent, Ragged, Bsr };
    auto kind = random.below(6);
    bool paged = kind <= Latent, fused = kind == Fused;
    KVViewTypeInterface type;
    if (kind == Ragged)
      type = RaggedKVType::get(&context, heads, 64, 64, f32, f32, order,
                               indexType);
    else if (kind == Bsr)
      type = BsrKVType::get(&context, 16, heads, 64, 64, f32, f32, order,
                            indexType, 16);
    else if (kind == Latent)
      type = LatentKVType::get(&context, 64, 64, f32, page, indexType, false);
    else
      type = PagedKVType::get(&context, page, heads, 64, 64, f32, f32, order,
                              indexType, false, fused, kind == TwoTables);
    heads = type.getKVHeads();
    // Pools larger than any memory: addresses are computed, never read.
    int64_t tokens = int64_t(1) << 31;
    bool nhd = order == HeadOrder::NHD;
    SmallVector<int64_t> shape;
    if (paged)
      shape.push_back(tokens);
    if (fused)
      shape.push_back(2);
    int64_t perRow = paged ? page : tokens;
    if (kind != Latent && !nhd)
      shape.push_back(heads);
    shape.push_back(perRow);
    if (kind != Latent && nhd)
      shape.push_back(heads);
    shape.push_back(64);
    ASSERT_EQ(type.getPoolRank(), int64_t(shape.size()));
    SmallVector<int64_t> strides;
    for (size_t d = 0; d + 1 < shape.size(); ++d)
      strides.push_back(random.below(int64_t(1) << 30));
    strides.push_back(1);
    HostTensor pool(DType::F32, shape, nullptr, strides);
    SmallVector<HostTensor> pools(fused ? 1 : 2, pool), tables;
    for (unsigned t = 0; t < std::max(1u, type.getTableCount()); ++t) {
      std::vector<int64_t> table;
      for (int i = 0; i < 50; ++i)
        table.push_back(random.below((int64_t(1) << 31) - 1));
      tables.push_back(
          integers(table, indexType.isInteger(32) ? DType::I32 : DType::I64));
    }
    for (KVPart part : {KVPart::Keys, KVPart::Values, KVPart::Tail}) {
      if (type.getPartDim(part) == 0)
        continue;
      build(type, part);
      const HostTensor &pages =
          tables[type.getTableCount() ? type.getTable(part) : 0];
      for (int i = 0; i < 10; ++i) {
        int64_t head = random.below(heads);
        int64_t begin = paged ? random.below(10) : random.below(tokens / 2);
        int64_t key = random.below(paged ? page * 40 : tokens / 2);
        llvm::Expected<int64_t> own = getKVRowOffset(
            type, pools, ArrayRef(tables).take_front(type.getTableCount()),
            part, head, key, begin);
        ASSERT_TRUE(static_cast<bool>(own)) << llvm::toString(own.takeError());
        EXPECT_EQ(*own, interpret(pages, strides, head, key, begin));
        beyond32 += *own > int64_t(1) << 32;
      }
    }
  }
  EXPECT_GT(beyond32, 1000);
}

TEST_F(AddressTest, HandComputed) {
  Type f32 = Float32Type::get(&context), i32 = IntegerType::get(&context, 32);
  HostTensor pages = integers({9, 5, 2});
  auto offset = [&](KVViewTypeInterface type, ArrayRef<HostTensor> pools,
                    KVPart part, int64_t head, int64_t key, int64_t begin) {
    llvm::Expected<int64_t> result = getKVRowOffset(
        type, pools, ArrayRef(pages).take_front(type.getTableCount()), part,
        head, key, begin);
    if (result)
      return *result;
    ADD_FAILURE() << llvm::toString(result.takeError());
    return int64_t(-1);
  };
  // Key 5 of pages of 4 is slot 1 of the second page, here page 2.
  auto hnd = PagedKVType::get(&context, 4, 3, 8, 8, f32, f32, HeadOrder::HND,
                              i32, false, false, false);
  HostTensor pool = filled({10, 3, 4, 8}, 0);
  EXPECT_EQ(offset(hnd, {pool, pool}, KVPart::Values, 2, 5, 1),
            2 * 96 + 2 * 32 + 1 * 8);
  auto nhd = PagedKVType::get(&context, 4, 3, 8, 8, f32, f32, HeadOrder::NHD,
                              i32, false, false, false);
  pool = filled({10, 4, 3, 8}, 0);
  EXPECT_EQ(offset(nhd, {pool, pool}, KVPart::Keys, 2, 5, 1),
            2 * 96 + 1 * 24 + 2 * 8);
  auto fused = PagedKVType::get(&context, ShapedType::kDynamic, 3, 8, 8, f32,
                                f32, HeadOrder::NHD, i32, false, true, false);
  pool = filled({10, 2, 4, 3, 8}, 0);
  EXPECT_EQ(offset(fused, {pool}, KVPart::Values, 2, 5, 1),
            2 * 192 + 96 + 1 * 24 + 2 * 8);
  // Values by a table of their own: here the first page of it.
  auto two = PagedKVType::get(&context, 4, 3, 8, 8, f32, f32, HeadOrder::NHD,
                              i32, false, false, true);
  HostTensor valuePages = integers({9, 5, 8});
  llvm::Expected<int64_t> ofValues =
      getKVRowOffset(two, {filled({10, 4, 3, 8}, 0), filled({10, 4, 3, 8}, 0)},
                     {pages, valuePages}, KVPart::Values, 2, 5, 1);
  ASSERT_TRUE(static_cast<bool>(ofValues));
  EXPECT_EQ(*ofValues, 8 * 96 + 1 * 24 + 2 * 8);
  auto latent = LatentKVType::get(&context, 16, 8, f32, 4, i32, false);
  EXPECT_EQ(offset(latent, {filled({10, 4, 16}, 0), filled({10, 4, 8}, 0)},
                   KVPart::Tail, 0, 5, 1),
            2 * 32 + 1 * 8);
  auto ragged =
      RaggedKVType::get(&context, 3, 8, 8, f32, f32, HeadOrder::NHD, i32);
  pool = filled({20, 3, 8}, 0);
  EXPECT_EQ(offset(ragged, {pool, pool}, KVPart::Keys, 1, 5, 11), 16 * 24 + 8);
}

TEST_F(AddressTest, DenseTables) {
  // [requests, pages]: entries count over the rows.
  Type f32 = Float32Type::get(&context), i64 = IntegerType::get(&context, 64);
  auto type = PagedKVType::get(&context, 4, 1, 8, 8, f32, f32, HeadOrder::HND,
                               i64, true, false, false);
  HostTensor pool = filled({10, 1, 4, 8}, 0);
  HostTensor pages(DType::I64, {2, 3});
  pages.setInteger({1, 2}, 7);
  llvm::Expected<int64_t> result = getKVRowOffset(
      type, {pool, pool}, pages, KVPart::Keys, 0, 9, /*tableBegin=*/3);
  ASSERT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(*result, 7 * 32 + 8);
}

} // namespace
