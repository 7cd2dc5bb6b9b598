//===- Inputs.cpp - arguments of a program from a batch -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In this order: values that somebody gave, tables made from request lengths,
// then everything else as random numbers, since shapes follow from the tables.
//
//===----------------------------------------------------------------------===//

#include "fi/Execution/Inputs.h"
#include "fi/Support/Random.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Reading tables
//===----------------------------------------------------------------------===//

/// Entry `i` of a table, or none if it is not there.
static std::optional<int64_t> entry(const HostValue &value,
                                    llvm::ArrayRef<int64_t> index) {
  if (value.getKind() != HostValue::Kind::Tensor)
    return std::nullopt;
  const HostTensor &tensor = value.getTensor();
  if (tensor.getRank() != static_cast<int64_t>(index.size()))
    return std::nullopt;
  for (size_t d = 0; d < index.size(); ++d)
    if (index[d] < 0 || index[d] >= tensor.getSize(d))
      return std::nullopt;
  return tensor.getInteger(index);
}

namespace {

/// The keys of one request in a view: pages in the table, and how many keys.
struct RequestKeys {
  int64_t tableBegin = 0, length = 0;
};

} // namespace

/// Where the keys of each request are, as far as the tables tell. `page` is the
/// number of keys of a page.
template <typename Lookup>
static std::vector<RequestKeys> readView(const ViewInfo &view, int64_t page,
                                         Lookup lookup) {
  std::vector<RequestKeys> requests;
  auto size = [&](int argument) -> int64_t {
    const HostValue *value = lookup(argument);
    if (!value || value->getKind() != HostValue::Kind::Tensor ||
        value->getTensor().getRank() < 1)
      return 0;
    return value->getTensor().getSize(0);
  };
  if (view.isDense) {
    for (int64_t r = 0; r < size(view.lengths); ++r)
      requests.push_back(
          {r, std::max<int64_t>(entry(*lookup(view.lengths), {r}).value_or(0),
                                0)});
    return requests;
  }
  // A table may be wrong: what it says must not overflow.
  constexpr int64_t kLimit = int64_t(1) << 40;
  auto clamp = [](int64_t value, int64_t limit) {
    return std::min(std::max<int64_t>(value, 0), limit);
  };
  for (int64_t r = 0; r + 1 < size(view.indptr); ++r) {
    int64_t begin = clamp(entry(*lookup(view.indptr), {r}).value_or(0), kLimit);
    int64_t end =
        clamp(entry(*lookup(view.indptr), {r + 1}).value_or(0), kLimit);
    int64_t length = std::max<int64_t>(end - begin, 0);
    if (view.isPaged && length > 0) {
      const HostValue *last = lookup(view.last);
      int64_t slots = last ? entry(*last, {r}).value_or(page) : page;
      length = clamp(length - 1, kLimit / std::max<int64_t>(page, 1)) * page +
               clamp(slots, page);
    }
    requests.push_back({begin, length});
  }
  return requests;
}

//===----------------------------------------------------------------------===//
// Making inputs
//===----------------------------------------------------------------------===//

namespace {

class InputMaker {
public:
  InputMaker(const Signature &signature, const Batch &batch,
             const InputOptions &options)
      : signature(signature), batch(batch), options(options),
        seed(batch.seed.value_or(options.seed)),
        values(signature.arguments.size()), isMade(signature.arguments.size()) {
  }
  Expected<std::vector<HostValue>> make();

private:
  const ArgumentInfo &info(int argument) const {
    return signature.arguments[argument];
  }
  const HostValue *lookup(int argument) const {
    return argument >= 0 && values[argument] ? &*values[argument] : nullptr;
  }
  std::string where() const {
    return batch.name.empty() ? std::string() : "'" + batch.name + "': ";
  }
  Error checkNames();
  Error takeGivenTensors();
  /// Uses the batch's source for an argument.
  Error takeSource(int argument, const ArgumentSource &source,
                   llvm::ArrayRef<int64_t> shape);
  Error setScalar(int argument, const HostTensor &tensor, StringRef origin);

  Error makeTables();
  Error makeBlocks(const ViewInfo &view);
  Error makeViewTables(const ViewInfo &view);
  Error setTable(int argument, llvm::ArrayRef<int64_t> entries,
                 llvm::ArrayRef<int64_t> shape);
  Error setOffsets(int argument, int64_t RequestLengths::*member);
  Error setPositions(const AttentionInfo &attention);
  Expected<int64_t> getPageSize(const ViewInfo &view);
  /// The next unused pages of a pool.
  std::vector<int64_t> takePages(int pool, int64_t count);

  void inferScales(const ViewInfo &view);
  void inferShapes();
  void setSize(int argument, size_t dim, std::optional<int64_t> size);
  std::optional<int64_t> getRows(int rows) const;
  Error makeRest(int argument);
  void fillUnused();

  const Signature &signature;
  const Batch &batch;
  const InputOptions &options;
  uint64_t seed;
  std::vector<std::optional<HostValue>> values;
  /// Whether the argument's value is of our own making.
  std::vector<bool> isMade;
  /// Shapes with the sizes that follow from the tables, but where the batch
  /// states a shape.
  std::vector<llvm::SmallVector<int64_t, 4>> shapes;
  std::vector<bool> isStated;
  /// Per pool: its pages in the order in which they are given out.
  std::map<int, std::vector<int64_t>> pageOrder;
  std::map<int, size_t> pagesTaken;
};

Error InputMaker::checkNames() {
  auto check = [&](StringRef name, const Twine &origin) -> Error {
    if (signature.find(name) >= 0)
      return Error::success();
    llvm::SmallVector<StringRef> names;
    for (const ArgumentInfo &argument : signature.arguments)
      names.push_back(argument.name);
    return createStringError(origin + "program '" + signature.program +
                             "' has no argument '" + name + "'; it has " +
                             llvm::join(names, ", "));
  };
  for (auto &[name, source] : batch.arguments)
    if (Error error = check(name, where()))
      return error;
  for (const NamedTensor &tensor : options.tensors)
    if (Error error = check(tensor.name, ""))
      return error;
  return Error::success();
}

Error InputMaker::setScalar(int argument, const HostTensor &tensor,
                            StringRef origin) {
  if (tensor.getNumElements() != 1)
    return createStringError("argument '" + StringRef(info(argument).name) +
                             "': expected one number, but got shape " +
                             formatShape(tensor.getShape()) + " from " +
                             origin);
  auto converted =
      convertTensor(tensor, info(argument).name, info(argument).type,
                    tensor.getShape(), origin);
  if (!converted)
    return converted.takeError();
  const void *data = converted->getData();
  values[argument] =
      isFloat(info(argument).type)
          ? HostValue::number(readFloat(data, info(argument).type))
          : HostValue::integer(readInteger(data, info(argument).type));
  return Error::success();
}

Error InputMaker::takeGivenTensors() {
  for (const NamedTensor &given : options.tensors) {
    int argument = signature.find(given.name);
    if (info(argument).kind == ArgumentInfo::Kind::Scalar) {
      if (Error error = setScalar(argument, given.tensor, "its file"))
        return error;
      continue;
    }
    auto tensor = convertTensor(given.tensor, given.name, info(argument).type,
                                info(argument).shape, "its file");
    if (!tensor)
      return tensor.takeError();
    values[argument] = HostValue(*tensor);
  }
  return Error::success();
}

Error InputMaker::takeSource(int argument, const ArgumentSource &source,
                             llvm::ArrayRef<int64_t> shape) {
  const ArgumentInfo &to = info(argument);
  bool isRandom = source.kind != ArgumentSource::Kind::Values &&
                  source.kind != ArgumentSource::Kind::Npy &&
                  source.kind != ArgumentSource::Kind::Npz;
  auto tensor =
      makeTensor(source, to.name, to.type, shape, deriveSeed(seed, to.name));
  if (!tensor)
    return createStringError(where() + llvm::toString(tensor.takeError()));
  isMade[argument] = isRandom;
  if (to.kind == ArgumentInfo::Kind::Scalar)
    return setScalar(argument, *tensor, "the batch");
  values[argument] = HostValue(*tensor);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Tables from request lengths
//===----------------------------------------------------------------------===//

Error InputMaker::setTable(int argument, llvm::ArrayRef<int64_t> entries,
                           llvm::ArrayRef<int64_t> shape) {
  if (argument < 0 || values[argument])
    return Error::success();
  HostTensor tensor(DType::I64, shape);
  if (!entries.empty())
    std::memcpy(tensor.getData(), entries.data(),
                entries.size() * sizeof(int64_t));
  auto converted =
      convertTensor(tensor, info(argument).name, info(argument).type,
                    info(argument).shape, "the requests of the batch");
  if (!converted)
    return converted.takeError();
  values[argument] = HostValue(*converted);
  return Error::success();
}

Error InputMaker::setOffsets(int argument, int64_t RequestLengths::*member) {
  std::vector<int64_t> offsets = {0};
  for (const RequestLengths &request : batch.requests)
    offsets.push_back(offsets.back() + request.*member);
  return setTable(argument, offsets, static_cast<int64_t>(offsets.size()));
}

Error InputMaker::setPositions(const AttentionInfo &attention) {
  std::vector<int64_t> positions;
  for (const RequestLengths &request : batch.requests)
    for (int64_t i = 0; i < request.queryLength; ++i)
      positions.push_back(request.keyLength - request.queryLength + i);
  return setTable(attention.positions, positions,
                  static_cast<int64_t>(positions.size()));
}

Expected<int64_t> InputMaker::getPageSize(const ViewInfo &view) {
  constexpr int64_t kDefault = 16;
  size_t dim = view.getKeyDimension();
  int64_t known = view.page;
  for (auto [pool, table] : view.getPools()) {
    if (known < 0 && pool >= 0 && info(pool).shape.size() > dim)
      known = info(pool).shape[dim];
    if (const HostValue *value = lookup(pool);
        known < 0 && value && value->getTensor().getRank() > int64_t(dim))
      known = value->getTensor().getSize(dim);
  }
  if (known >= 0 && batch.pageSize && *batch.pageSize != known)
    return createStringError(where() + "page_size: the program's pages hold " +
                             Twine(known) + " keys, but the batch says " +
                             Twine(*batch.pageSize));
  if (known >= 0)
    return known;
  return batch.pageSize.value_or(kDefault);
}

std::vector<int64_t> InputMaker::takePages(int pool, int64_t count) {
  size_t &taken = pagesTaken[pool];
  auto begin = pageOrder[pool].begin() + taken;
  taken += count;
  return std::vector<int64_t>(begin, begin + count);
}

Error InputMaker::makeViewTables(const ViewInfo &view) {
  auto isMissing = [&](int table) { return table >= 0 && !values[table]; };
  if (!view.isPaged) {
    if (isMissing(view.indptr))
      if (Error error = setOffsets(view.indptr, &RequestLengths::keyLength))
        return error;
  } else if (view.isDense) {
    if (!isMissing(view.pages) || !isMissing(view.lengths))
      return Error::success();
  } else if (!isMissing(view.indptr) || !isMissing(view.pages) ||
             !isMissing(view.last)) {
    return Error::success();
  }
  if (!view.isPaged)
    return view.blockRows ? makeBlocks(view) : Error::success();

  auto page = getPageSize(view);
  if (!page)
    return page.takeError();
  auto pagesOf = [&](const RequestLengths &request) {
    return (request.keyLength + *page - 1) / *page;
  };
  int64_t requests = batch.requests.size();
  if (view.isDense) {
    int64_t most = 0;
    for (const RequestLengths &request : batch.requests)
      most = std::max(most, pagesOf(request));
    if (most * std::max<int64_t>(requests, 1) > int64_t(1) << 26)
      return createStringError(where() + "the dense page table would have more "
                                         "than 2^26 entries");
    // Entries beyond a request's pages are never read: they name no page.
    std::vector<int64_t> table(requests * most, -1), lengths;
    std::vector<int64_t> valueTable(table);
    for (int64_t r = 0; r < requests; ++r) {
      int64_t count = pagesOf(batch.requests[r]);
      lengths.push_back(batch.requests[r].keyLength);
      llvm::copy(takePages(view.keys, count), table.begin() + r * most);
      if (view.valuePages >= 0)
        llvm::copy(takePages(view.values, count),
                   valueTable.begin() + r * most);
    }
    if (Error error = setTable(view.pages, table, {requests, most}))
      return error;
    if (Error error = setTable(view.valuePages, valueTable, {requests, most}))
      return error;
    return setTable(view.lengths, lengths, requests);
  }
  std::vector<int64_t> indptr = {0}, pages, valuePages, last;
  for (const RequestLengths &request : batch.requests) {
    int64_t count = pagesOf(request);
    llvm::append_range(pages, takePages(view.keys, count));
    if (view.valuePages >= 0)
      llvm::append_range(valuePages, takePages(view.values, count));
    indptr.push_back(indptr.back() + count);
    last.push_back(count ? request.keyLength - (count - 1) * *page : 0);
  }
  if (Error error = setTable(view.indptr, indptr, requests + 1))
    return error;
  for (auto &[table, entries] :
       {std::pair(view.pages, pages), std::pair(view.valuePages, valuePages)})
    if (Error error =
            setTable(table, entries, static_cast<int64_t>(entries.size())))
      return error;
  return setTable(view.last, last, requests);
}

/// Lists of blocks: about one of three for each block of rows.
Error InputMaker::makeBlocks(const ViewInfo &view) {
  if (values[view.rowIndptr] || values[view.columns])
    return Error::success();
  Random random(deriveSeed(seed, "blocks"));
  auto blocksOf = [](int64_t size, int64_t block) {
    return size / block + (size % block != 0);
  };
  std::vector<int64_t> indptr = {0}, columns;
  for (const RequestLengths &request : batch.requests)
    for (int64_t b = blocksOf(request.queryLength, view.blockRows); b > 0;
         --b) {
      int64_t count = blocksOf(request.keyLength, view.blockColumns);
      for (int64_t column = 0; column < count; ++column)
        if (random.below(3) == 0)
          columns.push_back(column);
      indptr.push_back(columns.size());
    }
  if (Error error =
          setTable(view.rowIndptr, indptr, static_cast<int64_t>(indptr.size())))
    return error;
  return setTable(view.columns, columns, static_cast<int64_t>(columns.size()));
}

Error InputMaker::makeTables() {
  int64_t rows = 0, keys = 0;
  for (const RequestLengths &request : batch.requests) {
    rows += request.queryLength;
    keys += request.keyLength;
  }
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (rows > kMax || keys > kMax)
    return createStringError(where() +
                             "expected at most 2^31 - 1 rows and keys "
                             "in all requests together");
  // How many pages each pool needs, each set of tables counted once.
  std::map<int, int64_t> need;
  std::vector<int> counted;
  for (const ViewInfo &view : signature.getViews()) {
    if (!view.isPaged || view.keys < 0 || view.pages < 0 ||
        values[view.pages] || llvm::is_contained(counted, view.pages))
      continue;
    counted.push_back(view.pages);
    auto page = getPageSize(view);
    if (!page)
      return page.takeError();
    if (*page < 1)
      return createStringError(where() + "expected pages of at least one key");
    for (const RequestLengths &request : batch.requests) {
      int64_t count = (request.keyLength + *page - 1) / *page;
      need[view.keys] += count;
      if (view.valuePages >= 0)
        need[view.values] += count;
    }
  }
  for (auto [pool, count] : need) {
    if (count > int64_t(1) << 26)
      return createStringError(where() + "the batch needs " + Twine(count) +
                               " pages, but at most 2^26 are allowed");
    // Some pages stay unused, as in a serving pool.
    int64_t total = count + count / 4 + 1;
    int64_t fixed = info(pool).shape.empty() ? -1 : info(pool).shape[0];
    if (const HostValue *value = lookup(pool))
      fixed = value->getTensor().getSize(0);
    if (batch.poolPages)
      total = *batch.poolPages;
    if (fixed >= 0)
      total = fixed;
    if (total < count || total > int64_t(1) << 27)
      return createStringError(where() + "the batch needs " + Twine(count) +
                               " pages, but the pool '" + info(pool).name +
                               "' has " + Twine(total));
    std::vector<int64_t> order(total);
    std::iota(order.begin(), order.end(), 0);
    if (batch.shufflePages) {
      Random random(deriveSeed(seed, "pages of " + info(pool).name));
      for (int64_t i = total; i > 1; --i)
        std::swap(order[i - 1], order[random.below(i)]);
    }
    pageOrder[pool] = std::move(order);
  }

  for (const AttentionInfo &attention : signature.attentions) {
    if (Error error = setOffsets(attention.rows, &RequestLengths::queryLength))
      return error;
    if (Error error = setPositions(attention))
      return error;
  }
  for (const AppendInfo &append : signature.appends)
    if (Error error = setOffsets(append.rows, &RequestLengths::queryLength))
      return error;
  for (const ViewInfo &view : signature.getViews()) {
    if (Error error = makeViewTables(view))
      return error;
    std::vector<int64_t> zeros(batch.requests.size());
    if (Error error =
            setTable(view.origin, zeros, static_cast<int64_t>(zeros.size())))
      return error;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Shapes that follow, and random values
//===----------------------------------------------------------------------===//

void InputMaker::setSize(int argument, size_t dim,
                         std::optional<int64_t> size) {
  if (argument < 0 || !size || dim >= shapes[argument].size() ||
      info(argument).shape[dim] >= 0 || isStated[argument])
    return;
  shapes[argument][dim] = std::max(shapes[argument][dim], *size);
}

/// The end of an indptr, or the number of rows of a batch of one request.
std::optional<int64_t> InputMaker::getRows(int rows) const {
  if (rows < 0) {
    if (batch.requests.size() == 1)
      return batch.requests.front().queryLength;
    return std::nullopt;
  }
  const HostValue *value = lookup(rows);
  if (!value || value->getTensor().getRank() != 1 ||
      value->getTensor().getSize(0) == 0)
    return std::nullopt;
  return std::max<int64_t>(*entry(*value, {value->getTensor().getSize(0) - 1}),
                           0);
}

void InputMaker::inferShapes() {
  for (const ArgumentInfo &argument : signature.arguments) {
    const ArgumentSource *source = batch.find(argument.name);
    shapes.push_back(argument.shape);
    // What the batch states need not follow: rows of no request, spare pages.
    isStated.push_back(source && source->shape);
  }
  for (const AttentionInfo &attention : signature.attentions) {
    setSize(attention.query, 0, getRows(attention.rows));
    setSize(attention.queryTail, 0, getRows(attention.rows));
    for (int place : attention.outs)
      setSize(place, 0, getRows(attention.rows));
  }
  if (batch.hasRequests) {
    int64_t rows = 0;
    for (const RequestLengths &request : batch.requests)
      rows += request.queryLength;
    for (const NormInfo &norm : signature.norms)
      for (int argument : {norm.input, norm.addend})
        setSize(argument, 0, rows);
    for (const CompanionInfo &companion : signature.companions)
      for (int argument : companion.rows)
        setSize(argument, 0, rows);
  }
  for (const CompanionInfo &companion : signature.companions)
    for (int place : companion.outs)
      if (companion.rows.front() >= 0)
        setSize(place, 0, shapes[companion.rows.front()][0]);
  for (const NormInfo &norm : signature.norms)
    for (int place : norm.outs)
      if (norm.input >= 0)
        setSize(place, 0, shapes[norm.input][0]);
  for (const AppendInfo &append : signature.appends) {
    setSize(append.keys, 0, getRows(append.rows));
    setSize(append.values, 0, getRows(append.rows));
  }
  for (const ViewInfo &view : signature.getViews())
    for (auto [pool, pagesTable] : view.getPools()) {
      if (pool < 0)
        continue;
      if (!view.isPaged) {
        std::optional<int64_t> tokens;
        if (view.indptr >= 0)
          tokens = getRows(view.indptr);
        else if (batch.requests.size() == 1)
          tokens = batch.requests.front().keyLength;
        setSize(pool, view.getKeyDimension(), tokens);
        continue;
      }
      int64_t pages = batch.poolPages.value_or(0);
      int owner = pagesTable == view.pages ? view.keys : view.values;
      if (auto it = pageOrder.find(owner); it != pageOrder.end())
        pages = std::max<int64_t>(pages, it->second.size());
      if (const HostValue *table = lookup(pagesTable)) {
        const HostTensor &tensor = table->getTensor();
        auto *data = static_cast<const char *>(tensor.getData());
        int64_t bytes = getByteSize(tensor.getType());
        for (int64_t i = 0, n = tensor.getNumElements(); i < n; ++i)
          pages = std::max(pages,
                           readInteger(data + i * bytes, tensor.getType()) + 1);
      }
      setSize(pool, 0, pages);
      size_t dim = view.getKeyDimension();
      auto page = getPageSize(view);
      if (page)
        setSize(pool, dim, *page);
      else
        llvm::consumeError(page.takeError());
    }
  for (const ViewInfo &view : signature.getViews())
    inferScales(view);
}

/// Scales of pages, tokens or blocks have the sizes of their pool.
void InputMaker::inferScales(const ViewInfo &view) {
  for (bool wantValues : {false, true}) {
    const ViewInfo::Scales &scales = view.scales[wantValues];
    int pool = wantValues ? view.values : view.keys;
    if (scales.blocks >= 0 && pool >= 0) {
      llvm::SmallVector<int64_t, 4> sizes = shapes[pool];
      if (view.isFused)
        sizes.erase(sizes.begin() + 1);
      for (auto [dim, size] :
           llvm::enumerate(llvm::ArrayRef<int64_t>(sizes).drop_back()))
        if (size >= 0)
          setSize(scales.blocks, dim, size);
    }
    if (scales.argument < 0 || pool < 0 ||
        info(scales.argument).shape.size() < 2)
      continue;
    llvm::SmallVector<int64_t, 4> sizes = shapes[pool];
    if (view.isFused)
      sizes.erase(sizes.begin() + 1);
    sizes.truncate(scales.isPerPage ? 1 : sizes.size() - 1);
    for (auto [dim, size] : llvm::enumerate(sizes))
      if (size >= 0)
        setSize(scales.argument, dim, size);
  }
}

Error InputMaker::makeRest(int argument) {
  const ArgumentInfo &to = info(argument);
  if (const ArgumentSource *source = batch.find(to.name))
    return takeSource(argument, *source, shapes[argument]);
  auto missing = [&] {
    return createStringError(
        "argument '" + to.name + "' has no value; give it in the batch " +
        "(\"arguments\": {\"" + to.name + "\": ...}) or by --tensor " +
        to.name + "=FILE.npy");
  };
  if (to.kind == ArgumentInfo::Kind::Scalar) {
    for (const AttentionInfo &attention : signature.attentions)
      if (attention.scale == argument && attention.dim > 0) {
        values[argument] =
            HostValue::number(1 / std::sqrt(double(attention.dim)));
        return Error::success();
      }
    return missing();
  }
  // A pool of codes, or a destination of them.
  auto goesHere = [&](const auto &op) {
    return llvm::is_contained(op.outs, argument);
  };
  bool isCodes = to.type == DType::I8 &&
                 (llvm::any_of(signature.norms, goesHere) ||
                  llvm::any_of(signature.companions, goesHere) ||
                  llvm::any_of(signature.getViews(), [&](const ViewInfo &view) {
                    return view.keys == argument || view.values == argument ||
                           view.tail == argument;
                  }));
  if (to.isPlan || (!isFloat(to.type) && !isCodes))
    return missing();
  ArgumentSource random;
  random.kind = ArgumentSource::Kind::Normal;
  if (isCodes)
    random.second = 24;
  for (const ViewInfo &view : signature.getViews())
    for (bool wantValues : {false, true}) {
      const ViewInfo::Scales &scales = view.scales[wantValues];
      int pool = wantValues ? view.values : view.keys;
      // Codes of 4 bits take all values, their scales those around 1.
      if (scales.block && (pool == argument || scales.blocks == argument)) {
        random.kind = ArgumentSource::Kind::Uniform;
        random.first = pool == argument ? -128 : 0.25;
        random.second = pool == argument ? 128 : 2;
      }
    }
  return takeSource(argument, random, shapes[argument]);
}

/// Fills what no request uses of the pools that were made here with NaN.
void InputMaker::fillUnused() {
  std::map<int, std::vector<bool>> used;
  std::map<int, const ViewInfo *> layouts;
  std::vector<ViewInfo> views = signature.getViews();
  for (const ViewInfo &view : views)
    for (auto [pool, pagesTable] : view.getPools()) {
      if (pool < 0 || !values[pool] || !isMade[pool] ||
          !isFloat(info(pool).type))
        continue;
      // One request has all tokens.
      if (!view.isPaged && view.indptr < 0)
        continue;
      const HostTensor &tensor = values[pool]->getTensor();
      int64_t page = view.isPaged ? tensor.getSize(view.getKeyDimension()) : 1;
      int64_t slots = view.isPaged ? tensor.getSize(0) * page
                                   : tensor.getSize(view.getKeyDimension());
      std::vector<bool> &mark = used[pool];
      mark.resize(slots);
      layouts[pool] = &view;
      auto find = [&](int argument) { return lookup(argument); };
      for (const RequestKeys &request : readView(view, page, find))
        for (int64_t key = 0; key < request.length; ++key) {
          int64_t slot = request.tableBegin + key;
          if (view.isPaged) {
            const HostValue *table = lookup(pagesTable);
            std::optional<int64_t> id =
                view.isDense ? entry(*table, {request.tableBegin, key / page})
                             : entry(*table, {request.tableBegin + key / page});
            if (!id || *id < 0 || *id >= tensor.getSize(0))
              break;
            slot = *id * page + key % page;
          }
          if (slot >= slots)
            break;
          mark[slot] = true;
        }
    }
  double nan = std::numeric_limits<double>::quiet_NaN();
  for (auto &[pool, mark] : used) {
    const ViewInfo &view = *layouts[pool];
    const HostTensor &tensor = values[pool]->getTensor();
    // A pool as [outer, slot, inner] runs of contiguous elements, with the
    // token dimension in the middle.
    size_t token = view.getKeyDimension();
    int64_t page = tensor.getSize(token), inner = 1, between = 1;
    for (int64_t d = token + 1; d < tensor.getRank(); ++d)
      inner *= tensor.getSize(d);
    for (size_t d = view.isPaged ? 1 : 0; d < token; ++d)
      between *= tensor.getSize(d);
    int64_t bytes = getByteSize(tensor.getType());
    auto *data = static_cast<char *>(tensor.getData());
    for (size_t slot = 0; slot < mark.size(); ++slot) {
      if (mark[slot])
        continue;
      int64_t block = view.isPaged ? slot / page : 0;
      int64_t in = view.isPaged ? slot % page : slot;
      for (int64_t b = 0; b < between; ++b) {
        int64_t first = ((block * between + b) * page + in) * inner;
        for (int64_t i = 0; i < inner; ++i)
          writeFloat(data + (first + i) * bytes, tensor.getType(), nan);
      }
    }
  }
}

Expected<std::vector<HostValue>> InputMaker::make() {
  if (Error error = checkNames())
    return std::move(error);
  if (Error error = takeGivenTensors())
    return std::move(error);
  // What tells lengths must be known before shapes can follow.
  for (size_t i = 0; i < values.size(); ++i) {
    const ArgumentSource *source = batch.find(info(i).name);
    bool tells =
        source && (source->kind == ArgumentSource::Kind::Values ||
                   source->kind == ArgumentSource::Kind::Npy ||
                   source->kind == ArgumentSource::Kind::Npz || info(i).isPlan);
    if (tells && !values[i])
      if (Error error = takeSource(i, *source, info(i).shape))
        return std::move(error);
  }
  if (batch.hasRequests)
    if (Error error = makeTables())
      return std::move(error);
  inferShapes();
  for (size_t i = 0; i < values.size(); ++i)
    if (!values[i])
      if (Error error = makeRest(i))
        return std::move(error);
  if (options.nanUnused)
    fillUnused();
  std::vector<HostValue> result;
  for (std::optional<HostValue> &value : values)
    result.push_back(std::move(*value));
  return result;
}

} // namespace

Expected<std::vector<HostValue>> fi::makeInputs(const Signature &signature,
                                                const Batch &batch,
                                                const InputOptions &options) {
  return InputMaker(signature, batch, options).make();
}

HostValue fi::cloneValue(const HostValue &value) {
  if (value.getKind() != HostValue::Kind::Tensor)
    return value;
  const HostTensor &from = value.getTensor();
  HostTensor copy(from.getType(), from.getShape());
  copyTensor(from, copy);
  return copy;
}

std::vector<int64_t> fi::getRowOffsets(const AttentionInfo &attention,
                                       llvm::ArrayRef<HostValue> values) {
  std::vector<int64_t> offsets;
  int of = attention.query >= 0 ? attention.query : attention.queryRows;
  if (attention.rows >= 0) {
    const HostTensor &tensor = values[attention.rows].getTensor();
    for (int64_t i = 0; tensor.getRank() == 1 && i < tensor.getSize(0); ++i)
      offsets.push_back(tensor.getInteger({i}));
  } else if (of >= 0 && values[of].getKind() == HostValue::Kind::Tensor) {
    offsets = {0, values[of].getTensor().getSize(0)};
  }
  return offsets;
}

std::vector<RequestLengths>
fi::getRequestLengths(const AttentionInfo &attention,
                      llvm::ArrayRef<HostValue> values) {
  const ViewInfo &view = attention.view;
  std::vector<RequestLengths> lengths;
  std::vector<int64_t> offsets = getRowOffsets(attention, values);
  for (size_t r = 0; r + 1 < offsets.size(); ++r)
    lengths.push_back({offsets[r + 1] - offsets[r], 0});
  if (view.keys < 0)
    return lengths;
  const HostTensor &pool = values[view.keys].getTensor();
  if (!view.isPaged && view.indptr < 0) {
    if (!lengths.empty())
      lengths.front().keyLength = pool.getSize(view.getKeyDimension());
    return lengths;
  }
  int64_t page = view.isPaged ? pool.getSize(view.getKeyDimension()) : 1;
  auto find = [&](int argument) {
    return argument >= 0 ? &values[argument] : nullptr;
  };
  std::vector<RequestKeys> keys = readView(view, page, find);
  for (size_t r = 0; r < lengths.size() && r < keys.size(); ++r)
    lengths[r].keyLength = keys[r].length;
  return lengths;
}
