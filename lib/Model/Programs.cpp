//===- Programs.cpp - the programs of a model -----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FormatNumber.h"
#include "fi/Model/Model.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace fi;
using namespace fi::model;

namespace {

std::string str(int64_t value) { return std::to_string(value); }

/// Texts of the programs of one model. Every text but its program's name is the
/// same where it computes the same.
class Maker {
public:
  explicit Maker(const Model &model) : model(model) {}

  std::vector<Program> make() {
    for (const Layer &layer : model.layers)
      for (const std::string &type : model.kvTypes) {
        std::string suffix = (layer.name.empty() ? "" : "_" + layer.name) +
                             (type == model.dtype ? "" : "_" + type);
        add("attention" + suffix, model.latent ? latentAttention(layer, type)
                                               : attention(layer, type));
        add("append" + suffix,
            model.latent ? latentAppend(layer, type) : append(layer, type));
      }
    for (const Layer &layer : model.layers) {
      std::string suffix = layer.name.empty() ? "" : "_" + layer.name;
      if (model.latent)
        add("prefill" + suffix, prefill(layer));
      if (layer.rope)
        add("rope" + suffix, rope(layer));
    }
    if (model.norms)
      for (int64_t dim : model.norms->dims)
        add("norm_" + str(dim), norm(1, dim, /*addsRest=*/false));
    if (model.norms)
      add("add_norm", norm(1, model.norms->dims.front(), /*addsRest=*/true));
    if (model.hasHeadNorms) {
      int64_t dim = model.latent ? model.latent->nopeDim + model.latent->ropeDim
                                 : model.headDim;
      add("query_norm", norm(model.queryHeads, dim, /*addsRest=*/false));
      add("key_norm", norm(model.latent ? model.queryHeads : model.kvHeads, dim,
                           /*addsRest=*/false));
    }
    if (model.gate)
      add("gate", gate());
    return std::move(programs);
  }

private:
  /// Adds a program, unless one computes the same.
  void add(const std::string &name, const std::string &text) {
    if (!known.try_emplace(text).second)
      return;
    std::string named = text;
    named.replace(named.find("@NAME"), 5, "@" + name);
    programs.push_back({name, named});
  }

  std::string rows(int64_t heads, int64_t dim) {
    return "tensor<?x" + str(heads) + "x" + str(dim) + "x" + model.dtype + ">";
  }

  bool isCode(const std::string &type) { return type != model.dtype; }
  /// The element of a view's type.
  std::string stored(const std::string &type) {
    return isCode(type) ? "!fi.scaled<" + type + ", per = tensor, by = f32>"
                        : type;
  }

  std::string paged(const std::string &type) {
    bool isNHD = model.layout == "NHD";
    std::string page = str(model.pageSize), heads = str(model.kvHeads),
                dim = str(model.headDim);
    return "!ix = tensor<?xi32>\n!pool = memref<?x" +
           (isNHD ? page + "x" + heads : heads + "x" + page) + "x" + dim + "x" +
           type + ">\n!kv = !fi.paged_kv<" + page + "x" + heads + "x" + dim +
           "x" + stored(type) + ", " + model.layout + ">\n";
  }
  std::string latents(const std::string &type) {
    const Latent &latent = *model.latent;
    auto pool = [&](const char *name, int64_t dim) {
      return std::string(name) + " = memref<?x" + str(model.pageSize) + "x" +
             str(dim) + "x" + type + ">\n";
    };
    return "!ix = tensor<?xi32>\n" + pool("!latents", latent.rank) +
           pool("!tails", latent.ropeDim) + "!kv = !fi.latent_kv<" +
           str(latent.rank) + "+" + str(latent.ropeDim) + "x" + stored(type) +
           ", page = " + str(model.pageSize) + ">\n";
  }

  static constexpr const char *kPlan =
      "plan(%rows: !ix, %indptr: !ix, %pages: !ix, %last: !ix)";
  static constexpr const char *kTables =
      "tables(%indptr, %pages, %last : !ix, !ix, !ix) ";

  std::string clauses(const Layer &layer) {
    std::string text = "scale(" + formatNumber(model.scale) + ") ";
    if (model.softcap)
      text += "score(#fi.softcap<" + formatNumber(model.softcap) + ">) ";
    if (model.hasSinks)
      text += "sink(%sinks : tensor<" + str(model.queryHeads) + "xf32>) ";
    return text + "mask(#fi.causal" +
           (layer.window ? ", #fi.window<left = " + str(layer.window - 1) + ">"
                         : "") +
           ") ";
  }
  std::string sinks() {
    return model.hasSinks
               ? ", %sinks: tensor<" + str(model.queryHeads) + "xf32>"
               : "";
  }

  std::string attention(const Layer &layer, const std::string &type) {
    bool isScaled = isCode(type);
    return paged(type) + "!q = " + rows(model.queryHeads, model.headDim) +
           "\n!lse = tensor<?x" + str(model.queryHeads) +
           "xf32>\nfi.program @NAME " + kPlan +
           "\n    run(%q: !q, %k: !pool, %v: !pool" +
           (isScaled ? ", %ks: f32, %vs: f32" : "") + sinks() +
           ") -> (!q, !lse) {\n  %kv = fi.view.paged %k, %v " + kTables +
           (isScaled ? "scales(%ks, %vs : f32, f32) " : "") +
           ": !pool, !pool -> !kv\n  %o, %lse = fi.attention %q rows(%rows : "
           "!ix) over %kv " +
           clauses(layer) +
           ": !q over !kv -> !q, !lse\n  fi.return %o, %lse : !q, !lse\n}\n";
  }

  std::string transform(const Layer &layer, const char *region) {
    const Rope &rope = *layer.rope;
    return "pair<" + rope.pairs + "> dims(" + str(rope.dims) + ") " + region +
           "(#fi.rotary<" + formatNumber(rope.theta) +
           (rope.scaling.empty() ? "" : ", " + rope.scaling) + ">) ";
  }

  std::string append(const Layer &layer, const std::string &type) {
    bool isScaled = isCode(type);
    return paged(type) + "!new = " + rows(model.kvHeads, model.headDim) +
           "\nfi.program @NAME " + kPlan +
           "\n    run(%nk: !new, %nv: !new, %k: !pool, %v: !pool" +
           (isScaled ? ", %ks: f32, %vs: f32" : "") +
           ") {\n  %kv = fi.view.paged %k, %v " + kTables +
           (isScaled ? "scales(%ks, %vs : f32, f32) " : "") +
           ": !pool, !pool -> !kv\n  fi.append %nk, %nv rows(%rows : !ix) to "
           "%kv " +
           (layer.rope ? transform(layer, "key") : "") +
           ": !new, !new to !kv\n  fi.return\n}\n";
  }

  std::string latentAttention(const Layer &layer, const std::string &type) {
    bool isScaled = isCode(type);
    return latents(type) +
           "!q = " + rows(model.queryHeads, model.latent->rank) +
           "\n!t = " + rows(model.queryHeads, model.latent->ropeDim) +
           "\n!lse = tensor<?x" + str(model.queryHeads) +
           "xf32>\nfi.program @NAME " + kPlan +
           "\n    run(%q: !q, %t: !t, %c: !latents, %r: !tails" +
           (isScaled ? ", %s: f32" : "") + sinks() +
           ") -> (!q, !lse) {\n  %kv = fi.view.latent %c, %r " + kTables +
           (isScaled ? "scales(%s : f32) " : "") +
           ": !latents, !tails -> !kv\n  %o, %lse = fi.attention %q, %t "
           "rows(%rows : !ix) over %kv " +
           clauses(layer) +
           ": !q, !t over !kv -> !q, !lse\n  fi.return %o, %lse : !q, "
           "!lse\n}\n";
  }

  std::string latentAppend(const Layer &layer, const std::string &type) {
    bool isScaled = isCode(type);
    return latents(type) + "!c = " + rows(1, model.latent->rank) +
           "\n!t = " + rows(1, model.latent->ropeDim) + "\nfi.program @NAME " +
           kPlan + "\n    run(%nc: !c, %nt: !t, %c: !latents, %r: !tails" +
           (isScaled ? ", %s: f32" : "") +
           ") {\n  %kv = fi.view.latent %c, %r " + kTables +
           (isScaled ? "scales(%s : f32) " : "") +
           ": !latents, !tails -> !kv\n  fi.append %nc, %nt rows(%rows : !ix) "
           "to %kv " +
           (layer.rope ? transform(layer, "tail") : "") +
           ": !c, !t to !kv\n  fi.return\n}\n";
  }

  std::string prefill(const Layer &layer) {
    const Latent &latent = *model.latent;
    int64_t keyDim = latent.nopeDim + latent.ropeDim;
    return "!ix = tensor<?xi32>\n!q = " + rows(model.queryHeads, keyDim) +
           "\n!v = " + rows(model.queryHeads, latent.valueDim) +
           "\n!lse = tensor<?x" + str(model.queryHeads) +
           "xf32>\n!kv = !fi.ragged_kv<" + str(model.queryHeads) + "x" +
           str(keyDim) + "x" + model.dtype + ", vo = " + str(latent.valueDim) +
           ">\nfi.program @NAME plan(%rows: !ix, %indptr: !ix)\n    run(%q: "
           "!q, %k: !q, %v: !v" +
           sinks() +
           ") -> (!v, !lse) {\n  %kv = fi.view.ragged %k, %v indptr(%indptr : "
           "!ix) : !q, !v -> !kv\n  %o, %lse = fi.attention %q rows(%rows : "
           "!ix) over %kv " +
           clauses(layer) +
           ": !q over !kv -> !v, !lse\n  fi.return %o, %lse : !v, !lse\n}\n";
  }

  /// Of queries, or of their tails.
  std::string rope(const Layer &layer) {
    int64_t dim = model.latent ? model.latent->ropeDim : model.headDim;
    return "!ix = tensor<?xi32>\n!q = " + rows(model.queryHeads, dim) +
           "\nfi.program @NAME run(%q: !q, %positions: !ix) -> (!q) {\n  %y = "
           "fi.rope %q at(%positions : !ix) " +
           transform(layer, "transform") +
           ": !q -> !q\n  fi.return %y : !q\n}\n";
  }

  std::string norm(int64_t heads, int64_t dim, bool addsRest) {
    Norms norms = model.norms.value_or(Norms());
    std::string weight = "tensor<" + str(dim) + "x" + model.dtype + ">";
    return "!x = " + rows(heads, dim) + "\nfi.program @NAME run(%x: !x" +
           (addsRest ? ", %rest: !x" : "") + ", %w: " + weight + ") -> (!x" +
           (addsRest ? ", !x" : "") + ") {\n  %y" +
           (addsRest ? ", %sum = fi.rms_norm %x add(%rest : !x) "
                     : " = fi.rms_norm %x ") +
           "weight(%w : " + weight + ") " + (norms.plusOne ? "plus_one " : "") +
           "eps(" + formatNumber(norms.eps) + ") : !x -> !x" +
           (addsRest ? ", !x\n  fi.return %y, %sum : !x, !x\n}\n"
                     : "\n  fi.return %y : !x\n}\n");
  }

  std::string gate() {
    return "!x = " + rows(1, 2 * model.gate->dim) +
           "\n!y = " + rows(1, model.gate->dim) +
           "\nfi.program @NAME run(%x: !x) -> (!y) {\n  %y = fi.gated %x act(" +
           model.gate->activation + ") : !x -> !y\n  fi.return %y : !y\n}\n";
  }

  const Model &model;
  std::vector<Program> programs;
  llvm::StringMap<char> known;
};

} // namespace

std::vector<Program> fi::model::makePrograms(const Model &model) {
  return Maker(model).make();
}
