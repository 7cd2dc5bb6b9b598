//===- NaiveBatch.cpp - A batch for the package written by hand -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See NaiveBatch.h.
//
//===----------------------------------------------------------------------===//
#include "NaiveBatch.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>

namespace fi::smoke {

std::string lastError(const fi_driver *driver) {
  return driver->last_error(driver->self);
}

DeviceMemory::DeviceMemory(const fi_driver *driver, size_t bytes)
    : driver(driver) {
  if (driver->memory_alloc(driver->self, std::max<size_t>(bytes, 16), &memory))
    memory = nullptr; // a run with it says so
}

DeviceMemory::~DeviceMemory() {
  if (memory)
    driver->memory_free(driver->self, memory);
}

fi_tensor NaiveBatch::tensor(void *data, fi_dtype dtype,
                             std::vector<int64_t> shape) {
  shapes.push_back(std::make_unique<int64_t[]>(shape.size()));
  std::copy(shape.begin(), shape.end(), shapes.back().get());
  return {data, dtype, int32_t(shape.size()), shapes.back().get(), nullptr};
}

fi_value NaiveBatch::onDevice(const std::vector<float> &host,
                              std::vector<int64_t> shape) {
  memory.push_back(
      std::make_unique<DeviceMemory>(driver, host.size() * sizeof(float)));
  fi_value value = {};
  value.kind = FI_VALUE_TENSOR;
  value.as.tensor = tensor(memory.back()->data(), FI_F32, std::move(shape));
  return value;
}

NaiveBatch::NaiveBatch(const fi_driver *driver, std::vector<int64_t> queries_,
                       std::vector<int64_t> keys_, int64_t padding,
                       uint32_t seed)
    : driver(driver), queries(std::move(queries_)), keys(std::move(keys_)) {
  std::mt19937 random(seed);
  int64_t requests = int64_t(queries.size());
  qo = {0};
  indptr = {0};
  for (int64_t r = 0; r < requests; ++r) {
    qo.push_back(qo.back() + int32_t(queries[r]));
    indptr.push_back(indptr.back() + int32_t((keys[r] + page - 1) / page));
    last.push_back(keys[r] ? int32_t((keys[r] - 1) % page + 1) : 0);
  }
  rowCount = qo.back() + padding;
  int64_t pageCount = indptr.back() + 3;
  pages.resize(indptr.back());
  std::vector<int32_t> shuffled(pageCount);
  std::iota(shuffled.begin(), shuffled.end(), 0);
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  std::copy_n(shuffled.begin(), pages.size(), pages.begin());

  auto fill = [&](std::vector<float> &to, int64_t count) {
    to.resize(count);
    for (float &x : to)
      x = float(int32_t(random() % 2001) - 1000) / 500;
  };
  fill(q, rowCount * heads * dim);
  // Padding rows are new tokens, too, of nobody.
  fill(newK, rowCount * kvHeads * dim);
  fill(newV, rowCount * kvHeads * dim);
  fill(k, pageCount * kvHeads * page * dim);
  fill(v, pageCount * kvHeads * page * dim);
  o.resize(rowCount * heads * dim);
  lse.resize(rowCount * heads);

  auto table = [&](std::vector<int32_t> &data) {
    fi_value value = {};
    value.kind = FI_VALUE_TENSOR;
    data.reserve(1); // never NULL
    value.as.tensor = tensor(data.data(), FI_I32, {int64_t(data.size())});
    planValues.push_back(value);
  };
  table(qo);
  table(indptr);
  table(pages);
  table(last);
  run.push_back(onDevice(q, {rowCount, heads, dim}));
  run.push_back(onDevice(newK, {rowCount, kvHeads, dim}));
  run.push_back(onDevice(newV, {rowCount, kvHeads, dim}));
  run.push_back(onDevice(k, {pageCount, kvHeads, page, dim}));
  run.push_back(onDevice(v, {pageCount, kvHeads, page, dim}));
  fi_value scalar = {};
  scalar.kind = FI_VALUE_FLOAT;
  scalar.as.f32 = factor;
  run.push_back(scalar);
  results.push_back(onDevice(o, {rowCount, heads, dim}).as.tensor);
  results.push_back(onDevice(lse, {rowCount, heads}).as.tensor);
}

void NaiveBatch::moveTo(const NaiveBatch &other) {
  for (size_t i = 0; i < run.size(); ++i)
    if (run[i].kind == FI_VALUE_TENSOR)
      run[i].as.tensor.data = other.run[i].as.tensor.data;
  for (size_t i = 0; i < results.size(); ++i)
    results[i].data = other.results[i].data;
}

std::string NaiveBatch::reset(void *stream) {
  std::vector<float> garbage(o.size(), -7.0f);
  const std::vector<float> *hosts[] = {&q, &newK, &newV, &k, &v, &garbage};
  void *to[] = {run[0].as.tensor.data, run[1].as.tensor.data,
                run[2].as.tensor.data, run[3].as.tensor.data,
                run[4].as.tensor.data, results[0].data};
  int result = 0;
  for (int i = 0; i < 6 && !result; ++i)
    if (!hosts[i]->empty())
      result = driver->copy_to_device(driver->self, to[i], hosts[i]->data(),
                                      hosts[i]->size() * sizeof(float), stream);
  if (!result && !lse.empty())
    result =
        driver->copy_to_device(driver->self, results[1].data, garbage.data(),
                               lse.size() * sizeof(float), stream);
  if (!result)
    result = driver->stream_synchronize(driver->self, stream);
  return result ? "copying to the device: " + lastError(driver) : "";
}

size_t NaiveBatch::poolIndex(int64_t request, int64_t head, int64_t key) const {
  int64_t p = pages[indptr[request] + key / page];
  return size_t(((p * kvHeads + head) * page + key % page) * dim);
}

std::string NaiveBatch::compare(void *stream) {
  int result = 0;
  auto read = [&](std::vector<float> &to, const void *from) {
    if (!result && !to.empty())
      result = driver->copy_to_host(driver->self, to.data(), from,
                                    to.size() * sizeof(float), stream);
  };
  std::vector<float> poolK(k.size()), poolV(v.size());
  read(o, results[0].data);
  read(lse, results[1].data);
  read(poolK, run[3].as.tensor.data);
  read(poolV, run[4].as.tensor.data);
  if (!result)
    result = driver->stream_synchronize(driver->self, stream);
  if (result)
    return "running and reading back: " + lastError(driver);

  // What append must leave.
  std::vector<float> wantK = k, wantV = v;
  for (size_t r = 0; r < queries.size(); ++r)
    for (int64_t t = 0; t < queries[r]; ++t)
      for (int64_t h = 0; h < kvHeads; ++h) {
        size_t to = poolIndex(int64_t(r), h, keys[r] - queries[r] + t);
        size_t from = size_t(((qo[r] + t) * kvHeads + h) * dim);
        std::copy_n(newK.begin() + from, dim, wantK.begin() + to);
        std::copy_n(newV.begin() + from, dim, wantV.begin() + to);
      }
  if (poolK != wantK || poolV != wantV)
    return "append: the pools are not what they must be";

  char text[200];
  auto differs = [&](int64_t row, int64_t head, const char *what, double want,
                     double got) {
    bool equal = std::isinf(want)
                     ? got == want
                     : std::fabs(want - got) <= 1e-4 * (1 + std::fabs(want));
    if (!equal)
      std::snprintf(text, sizeof(text),
                    "row %lld, head %lld, %s: expected %.9g, but got %.9g",
                    (long long)row, (long long)head, what, want, got);
    return !equal;
  };
  for (size_t r = 0; r <= queries.size(); ++r) {
    bool pad = r == queries.size();
    int64_t count = pad ? rowCount - qo.back() : queries[r];
    for (int64_t t = 0; t < count; ++t)
      for (int64_t h = 0; h < heads; ++h) {
        int64_t row = qo[r] + t, kvHead = h / (heads / kvHeads);
        int64_t visible = pad ? 0 : keys[r] - queries[r] + t + 1;
        const float *query = &q[size_t((row * heads + h) * dim)];
        std::vector<double> scores(visible), sum(dim, 0.0);
        double most = -INFINITY, weights = 0;
        for (int64_t key = 0; key < visible; ++key) {
          const float *at = &wantK[poolIndex(int64_t(r), kvHead, key)];
          double score = 0;
          for (int64_t d = 0; d < dim; ++d)
            score += double(query[d]) * at[d];
          scores[key] = score * 0.125 * 1.4426950408889634;
          most = std::max(most, scores[key]);
        }
        for (int64_t key = 0; key < visible; ++key) {
          const float *at = &wantV[poolIndex(int64_t(r), kvHead, key)];
          double weight = std::exp2(scores[key] - most);
          weights += weight;
          for (int64_t d = 0; d < dim; ++d)
            sum[d] += weight * at[d];
        }
        double wantLse = visible ? most + std::log2(weights) : -INFINITY;
        if (differs(row, h, "lse", wantLse, lse[size_t(row * heads + h)]))
          return text;
        for (int64_t d = 0; d < dim; ++d)
          if (differs(row, h, "output", visible ? factor * sum[d] / weights : 0,
                      o[size_t((row * heads + h) * dim + d)]))
            return text;
      }
  }
  return "";
}

} // namespace fi::smoke
