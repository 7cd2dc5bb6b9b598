//===- ManifestLaunch.cpp - Reading how kernels are launched --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ManifestLaunch.h"

#include <cstdio>

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

static ProfileShape readProfile(const JsonReader &json, int32_t threads) {
  constexpr int64_t most = 1 << 20;
  ProfileShape profile;
  profile.perLaunch = json.at("launch").integer(0, most);
  profile.perItem = json.at("item").integer(0, most);
  profile.perTile = json.at("tile").integer(0, most);
  const JsonReader &marks = json.at("marks");
  for (size_t i = 0, n = marks.size(); i < n; ++i) {
    ProfileShape::Mark &mark = profile.marks.emplace_back();
    std::string kind = marks[i].at("kind").string();
    if (kind != "phase" && kind != "moment" && kind != "end")
      marks[i].at("kind").error("'phase', 'moment' or 'end'");
    mark.kind = kind == "phase"    ? ProfileShape::Phase
                : kind == "moment" ? ProfileShape::Moment
                                   : ProfileShape::End;
    if (mark.kind != ProfileShape::End)
      mark.name = marks[i].at("name").string();
  }
  if (profile.marks.empty())
    marks.error("at least one mark");
  const JsonReader &roles = json.at("roles");
  for (size_t i = 0, n = roles.size(); i < n; ++i) {
    ProfileShape::Role &role = profile.roles.emplace_back();
    role.name = roles[i].at("name").string();
    role.warps = int32_t(roles[i].at("warps").integer(1, 32));
  }
  constexpr int32_t lanes = 32;
  if (profile.warps() * lanes != threads)
    roles.error("the warps of " + std::to_string(threads) + " threads");
  return profile;
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
  if (!json.get("overlaps").isNull())
    launch.overlaps = json.get("overlaps").boolean();
  if (!json.get("faults").isNull())
    launch.faults = json.get("faults").boolean();
  if (!json.get("profile").isNull())
    launch.profile = readProfile(json.get("profile"), launch.threads);
  if (!json.get("tensor_maps").isNull())
    for (size_t i = 0, n = json.get("tensor_maps").size(); i < n; ++i)
      launch.tensorMaps.push_back(
          readTensorMap(json.get("tensor_maps")[i], m, stage));
  return launch;
}

std::string readChip(const JsonReader &json) {
  std::string chip = json.string();
  int number = 0, end = 0;
  if (std::sscanf(chip.c_str(), "sm_%4d%n", &number, &end) != 1 ||
      number < 10 || size_t(end) + 1 < chip.size() ||
      (size_t(end) < chip.size() && chip[end] != 'a' && chip[end] != 'f'))
    json.error("the name of a chip such as \"sm_90a\"");
  return chip;
}

std::vector<std::string> readStrings(const JsonReader &json) {
  std::vector<std::string> strings;
  for (size_t i = 0; i < json.size(); ++i)
    strings.push_back(json[i].string());
  return strings;
}

void readDeviceTarget(const JsonReader &target, Manifest &m) {
  m.chip = readChip(target.at("chip"));
  if (!target.get("ptx").isNull()) {
    std::string text = target.get("ptx").string();
    int major = 0, minor = 0, end = 0;
    if (std::sscanf(text.c_str(), "%2d.%1d%n", &major, &minor, &end) != 2 ||
        end != int(text.size()) || major < 1)
      target.get("ptx").error("a version of PTX such as \"7.4\"");
    m.ptxVersion = 10 * major + minor;
  }
  if (!target.get("cubin").isNull())
    m.cubinChip = readChip(target.get("cubin").at("chip"));
  JsonReader unused = target.get("unused");
  for (size_t i = 0; !unused.isNull() && i < unused.size(); ++i)
    m.unused.push_back(
        {readStrings(unused[i].at("features")), unused[i].at("why").string(),
         unused[i].at("idle").boolean(), readStrings(unused[i].at("kernels"))});
}

} // namespace fi::runtime
