//===- ParseModel.cpp - the shapes of a model from JSON -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FormatNumber.h"
#include "fi/Model/Model.h"
#include "fi/Support/File.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace fi;
using namespace fi::model;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

namespace {

/// An object of the file. Readers leave their target as it is where a key is
/// not there, and note the first mistake.
class Reader {
public:
  Reader(const json::Object &object, std::string path, std::string &failure)
      : object(object), path(std::move(path)), failure(failure) {}

  bool has(StringRef key) {
    known.insert(key);
    return object.get(key) != nullptr;
  }

  void fail(StringRef key, const Twine &wanted) {
    if (!failure.empty())
      return;
    std::string got = "nothing";
    if (const json::Value *value = object.get(key))
      got = llvm::formatv("{0}", *value).str();
    if (got.size() > 60)
      got = got.substr(0, 57) + "...";
    failure =
        ("'" + path + key + "': expected " + wanted + ", but got " + got).str();
  }

  void readInteger(StringRef key, int64_t &to, int64_t least, int64_t most) {
    if (!has(key))
      return;
    std::optional<int64_t> value = object.getInteger(key);
    if (!value || *value < least || *value > most)
      return fail(key,
                  "an integer from " + Twine(least) + " to " + Twine(most));
    to = *value;
  }
  void needInteger(StringRef key, int64_t &to, int64_t least, int64_t most) {
    if (!has(key))
      return fail(key,
                  "an integer from " + Twine(least) + " to " + Twine(most));
    readInteger(key, to, least, most);
  }

  void readPositive(StringRef key, double &to) {
    if (!has(key))
      return;
    std::optional<double> value = object.getNumber(key);
    if (!value || !(*value > 0) || !std::isfinite(float(*value)))
      return fail(key, "a positive number");
    to = *value;
  }

  void readFlag(StringRef key, bool &to) {
    if (!has(key))
      return;
    if (std::optional<bool> value = object.getBoolean(key))
      to = *value;
    else
      fail(key, "true or false");
  }

  void readChoice(StringRef key, std::string &to, ArrayRef<StringRef> allowed) {
    if (!has(key))
      return;
    std::optional<StringRef> value = object.getString(key);
    if (!value || !llvm::is_contained(allowed, *value))
      return fail(key, "one of " + llvm::join(allowed, ", "));
    to = value->str();
  }

  /// A name that can be part of an identifier and of a path.
  void readName(StringRef key, std::string &to, StringRef more = "") {
    if (!has(key))
      return fail(key, "a name");
    std::optional<StringRef> value = object.getString(key);
    if (!value || value->empty() || value->size() > 100 ||
        !llvm::all_of(*value, [&](char c) {
          return llvm::isAlnum(c) || c == '_' || more.contains(c);
        }))
      return fail(key, "a name of letters, digits and " + Twine(more) + "_");
    to = value->str();
  }

  bool hasFailed() const { return !failure.empty(); }

  const json::Array *readArray(StringRef key, StringRef wanted) {
    if (!has(key))
      return nullptr;
    const json::Array *array = object.getArray(key);
    if (!array || array->empty())
      fail(key, wanted);
    return array;
  }

  /// A reader of an object within this one, whose mistakes are of the same
  /// file.
  Reader inside(const json::Object &inner, const Twine &name) {
    return Reader(inner, (path + name + ".").str(), failure);
  }

  /// Reads the object of a key by `read`, if it is there.
  void readObject(StringRef key, llvm::function_ref<void(Reader &)> read) {
    if (!has(key))
      return;
    const json::Object *inner = object.getObject(key);
    if (!inner)
      return fail(key, "an object");
    Reader reader = inside(*inner, key);
    read(reader);
    reader.finish();
  }

  /// After everything is read: other keys are mistakes.
  void finish() {
    for (const auto &entry : object)
      if (!known.contains(entry.first)) {
        std::vector<StringRef> names;
        for (const auto &name : known)
          names.push_back(name.getKey());
        llvm::sort(names);
        if (failure.empty())
          failure = ("'" + path + StringRef(entry.first) +
                     "': expected one of the keys " + llvm::join(names, ", "))
                        .str();
        return;
      }
  }

private:
  const json::Object &object;
  std::string path;
  std::string &failure;
  llvm::StringSet<> known;
};

constexpr int64_t kMostHeads = 1024, kMostDim = 512, kMostWidth = 1 << 20,
                  kMostContext = int64_t(1) << 30;

void readScaling(Reader &reader, StringRef kind, ArrayRef<StringRef> factors,
                 bool hasContext, std::string &to) {
  reader.readObject(kind, [&](Reader &inner) {
    std::string text = "#fi." + kind.str() + "<";
    for (StringRef key : factors) {
      double value = 0;
      if (!inner.has(key))
        inner.fail(key, "a positive number");
      inner.readPositive(key, value);
      text += (key == factors.front() ? "" : ", ") + key.str() + " = " +
              formatNumber(value);
    }
    if (hasContext) {
      int64_t context = 0;
      inner.needInteger("context", context, 1, kMostContext);
      text += ", context = " + std::to_string(context);
    }
    if (kind == "yarn" && inner.has("magnitude")) {
      double value = 1;
      inner.readPositive("magnitude", value);
      text += ", magnitude = " + formatNumber(value);
    }
    if (!to.empty())
      reader.fail(kind, "one scaling at most");
    to = text + ">";
  });
}

void readRope(Reader &reader, Rope &rope, int64_t dims) {
  rope.dims = dims;
  if (!reader.has("theta"))
    reader.fail("theta", "a number above 1");
  reader.readPositive("theta", rope.theta);
  if (rope.theta <= 1)
    reader.fail("theta", "a number above 1");
  reader.readInteger("dims", rope.dims, 2, dims);
  if (rope.dims % 2 != 0)
    reader.fail("dims", "an even number");
  reader.readChoice("pairs", rope.pairs, {"half", "interleaved"});
  readScaling(reader, "linear", {"factor"}, false, rope.scaling);
  readScaling(reader, "llama3", {"factor", "low", "high"}, true, rope.scaling);
  readScaling(reader, "yarn", {"factor", "fast", "slow"}, true, rope.scaling);
}

void readLayers(Reader &reader, Model &model) {
  int64_t ropeDims = model.latent ? model.latent->ropeDim : model.headDim;
  const json::Array *layers = reader.readArray("layers", "a list of objects");
  if (!layers) {
    model.layers.emplace_back();
    return;
  }
  for (auto [i, value] : llvm::enumerate(*layers)) {
    const json::Object *object = value.getAsObject();
    if (!object)
      return reader.fail("layers", "a list of objects");
    Reader inner = reader.inside(*object, "layers[" + Twine(i) + "]");
    Layer &layer = model.layers.emplace_back();
    if (layers->size() > 1 || inner.has("name"))
      inner.readName("name", layer.name);
    if (layers->size() == 1)
      layer.name.clear();
    inner.readInteger("window", layer.window, 0, kMostContext);
    inner.readObject("rope", [&](Reader &rope) {
      readRope(rope, layer.rope.emplace(), ropeDims);
    });
    inner.finish();
    if (llvm::count_if(model.layers, [&](const Layer &other) {
          return other.name == layer.name;
        }) > 1)
      inner.fail("name", "a name of its own for each kind of layer");
  }
}

/// Types of caches, of the file or of the command line.
void readTypes(Reader &reader, const Overrides &overrides, Model &model) {
  std::vector<std::string> types = overrides.kvTypes;
  const json::Array *array =
      reader.readArray("kv_dtypes", "a list of types of caches");
  if (types.empty() && array)
    for (const json::Value &value : *array)
      types.push_back(value.getAsString().value_or("?").str());
  if (types.empty())
    types.push_back(model.dtype);
  for (const std::string &type : types) {
    StringRef allowed[] = {model.dtype, "f8E4M3FN", "f8E5M2", "i8"};
    if (!llvm::is_contained(allowed, StringRef(type)))
      return reader.fail("kv_dtypes", "types among " +
                                          llvm::join(ArrayRef(allowed), ", ") +
                                          ", not " + type);
    if (!llvm::is_contained(model.kvTypes, type))
      model.kvTypes.push_back(type);
  }
}

/// Heads, the widths of keys and the scale.
void readHeads(Reader &reader, Model &model) {
  reader.needInteger("query_heads", model.queryHeads, 1, kMostHeads);
  int64_t keyDim;
  if (model.latent) {
    for (StringRef key : {"kv_heads", "head_dim"})
      if (reader.has(key))
        reader.fail(key, "no such key beside 'latent'");
    model.kvHeads = 1;
    keyDim = model.latent->nopeDim + model.latent->ropeDim;
  } else {
    reader.needInteger("kv_heads", model.kvHeads, 1, kMostHeads);
    reader.needInteger("head_dim", model.headDim, 8, kMostDim);
    if (model.kvHeads && model.queryHeads % model.kvHeads != 0)
      reader.fail("query_heads",
                  "a multiple of " + Twine(model.kvHeads) + " KV heads");
    if (model.headDim % 8 != 0)
      reader.fail("head_dim", "a multiple of 8");
    keyDim = model.headDim;
  }
  model.scale = 1 / std::sqrt(double(std::max<int64_t>(keyDim, 1)));
  reader.readPositive("scale", model.scale);
}

/// What the ranks of a model share is divided among them; a KV head that there
/// is not for each rank, every rank has.
void share(Reader &reader, int64_t ranks, Model &model) {
  auto divide = [&](StringRef key, int64_t &count) {
    if (count % ranks != 0)
      reader.fail(key, "a multiple of " + Twine(ranks) + " ranks");
    count /= ranks;
  };
  divide("query_heads", model.queryHeads);
  if (!model.latent) {
    if (model.kvHeads >= ranks)
      divide("kv_heads", model.kvHeads);
    else if (ranks % model.kvHeads != 0)
      reader.fail("kv_heads", "a divisor of " + Twine(ranks) + " ranks");
    else
      model.kvHeads = 1;
  }
  if (model.gate)
    divide("gate", model.gate->dim);
}

void readModel(Reader &reader, const Overrides &overrides, Model &model) {
  reader.readName("model", model.name, "-.");
  reader.has("about");
  reader.readChoice("dtype", model.dtype, {"f16", "bf16", "f32"});
  readTypes(reader, overrides, model);
  reader.readInteger("page_size", model.pageSize, 1, 1 << 16);
  if (overrides.pageSize)
    model.pageSize = overrides.pageSize;
  reader.readChoice("layout", model.layout, {"NHD", "HND"});
  reader.readObject("latent", [&](Reader &inner) {
    Latent &latent = model.latent.emplace();
    for (auto [key, to] : {std::pair("rank", &latent.rank),
                           std::pair("rope_dim", &latent.ropeDim),
                           std::pair("nope_dim", &latent.nopeDim),
                           std::pair("value_dim", &latent.valueDim)}) {
      inner.needInteger(key, *to, 8, kMostDim);
      if (*to % 8 != 0)
        inner.fail(key, "a multiple of 8");
    }
  });
  readHeads(reader, model);
  reader.readPositive("softcap", model.softcap);
  reader.readFlag("sinks", model.hasSinks);
  reader.readFlag("qk_norm", model.hasHeadNorms);
  reader.readObject("norms", [&](Reader &inner) {
    Norms &norms = model.norms.emplace();
    inner.readPositive("eps", norms.eps);
    inner.readFlag("plus_one", norms.plusOne);
    if (!inner.has("dims"))
      inner.fail("dims", "a list of widths");
    if (const json::Array *dims = inner.readArray("dims", "a list of widths"))
      for (const json::Value &value : *dims) {
        int64_t dim = value.getAsInteger().value_or(0);
        if (dim < 1 || dim > kMostWidth)
          inner.fail("dims", "widths from 1 to " + Twine(kMostWidth));
        if (!llvm::is_contained(norms.dims, dim))
          norms.dims.push_back(dim);
      }
  });
  reader.readObject("gate", [&](Reader &inner) {
    Gate &gate = model.gate.emplace();
    inner.needInteger("dim", gate.dim, 1, kMostWidth);
    inner.readChoice("activation", gate.activation,
                     {"silu", "gelu", "gelu_tanh"});
  });
  readLayers(reader, model);
  int64_t ranks = 1;
  reader.readInteger("tensor_parallel", ranks, 1, kMostHeads);
  if (overrides.tensorParallel)
    ranks = overrides.tensorParallel;
  // The rest are numbers by what was found.
  if (!reader.hasFailed())
    share(reader, ranks, model);
  reader.finish();
}

} // namespace

Expected<Model> fi::model::parseModel(StringRef text, StringRef file,
                                      const Overrides &overrides) {
  Expected<json::Value> value = parseJson(text, file);
  if (!value)
    return value.takeError();
  const json::Object *object = value->getAsObject();
  if (!object)
    return createStringError("'" + file +
                             "': expected an object with the "
                             "shapes of a model");
  std::string failure;
  Reader reader(*object, "", failure);
  Model model;
  readModel(reader, overrides, model);
  if (!failure.empty())
    return createStringError(file + ": " + failure);
  return model;
}
