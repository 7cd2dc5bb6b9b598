//===- ManifestLaunch.cpp - Reading how kernels are launched --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ManifestLaunch.h"

namespace fi::runtime {

static TensorMapRecipe readTensorMap(const JsonReader &json, const Manifest &m,
                                     const Stage &stage) {
  TensorMapRecipe recipe;
  recipe.buffer =
      int32_t(json.at("buffer").integer(0, int64_t(stage.buffers.size()) - 1));
  for (int32_t i = 0; i < recipe.buffer; ++i)
    recipe.slot += bufferSlots(m, stage.buffers[i]);
  const BufferRef &buffer = stage.buffers[recipe.buffer];
  if (buffer.kind == BufferRef::ArgumentBuffer) {
    const Argument &a = m.arguments[buffer.index];
    if (a.kind == FI_KIND_SCALAR)
      json.at("buffer").error("a tensor, not a scalar");
    recipe.rank = int32_t(a.shape.size());
    recipe.dtype = a.dtype;
  } else {
    const Output &output = buffer.kind == BufferRef::ResultBuffer
                               ? m.results[buffer.index]
                               : m.temporaries[buffer.index];
    recipe.rank = int32_t(output.shape.size());
    recipe.dtype = output.dtype;
  }
  constexpr int32_t mostDims = 5, mostInBox = 256;
  const JsonReader &box = json.at("box");
  if (recipe.rank < 1 || recipe.rank > mostDims ||
      box.size() != size_t(recipe.rank))
    box.error("a size for each of the buffer's dimensions, at most 5");
  for (int32_t d = 0; d < recipe.rank; ++d)
    recipe.box[d] = int32_t(box[size_t(d)].integer(1, mostInBox));
  recipe.swizzle = int32_t(json.at("swizzle").integer(0, 128));
  if (recipe.swizzle != 0 && recipe.swizzle != 32 && recipe.swizzle != 64 &&
      recipe.swizzle != 128)
    json.at("swizzle").error("0, 32, 64 or 128 bytes");
  return recipe;
}

LaunchShape readLaunch(const JsonReader &json, const Manifest &m,
                       const Stage &stage) {
  LaunchShape launch;
  if (!m.onDevice())
    return launch;
  launch.threads = int32_t(json.at("threads").integer(1, 1024));
  if (!json.get("shared").isNull())
    launch.shared = json.get("shared").integer(0, 1 << 20);
  if (!json.get("ctas_per_sm").isNull())
    launch.ctasPerSM = int32_t(json.get("ctas_per_sm").integer(1, 32));
  if (!json.get("grid").isNull()) {
    std::string grid = json.get("grid").string();
    if (grid != "items" && grid != "persistent")
      json.get("grid").error("'items' or 'persistent'");
    launch.persistent = grid == "persistent";
  }
  if (!json.get("empty_items").isNull())
    launch.emptyItems = json.get("empty_items").boolean();
  if (!json.get("faults").isNull())
    launch.faults = json.get("faults").boolean();
  if (!json.get("tensor_maps").isNull())
    for (size_t i = 0, n = json.get("tensor_maps").size(); i < n; ++i)
      launch.tensorMaps.push_back(
          readTensorMap(json.get("tensor_maps")[i], m, stage));
  return launch;
}

} // namespace fi::runtime
