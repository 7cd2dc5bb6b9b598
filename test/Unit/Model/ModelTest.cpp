//===- ModelTest.cpp - models from JSON, and their programs ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Model/Model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace fi;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// A model with `more` keys.
std::string text(const std::string &more = "") {
  return R"({"model": "m", "query_heads": 8, "kv_heads": 2, "head_dim": 64)" +
         (more.empty() ? "" : ", " + more) + "}";
}

std::vector<std::string> getNames(const std::string &json,
                                  const model::Overrides &overrides = {}) {
  auto parsed = model::parseModel(json, "m.json", overrides);
  EXPECT_TRUE(bool(parsed)) << toString(parsed.takeError());
  std::vector<std::string> names;
  if (parsed)
    for (const model::Program &program : model::makePrograms(*parsed))
      names.push_back(program.name);
  return names;
}

std::string getError(const std::string &json,
                     const model::Overrides &overrides = {}) {
  auto parsed = model::parseModel(json, "m.json", overrides);
  return parsed ? "none" : toString(parsed.takeError());
}

TEST(Model, ProgramsByWhatThereIs) {
  EXPECT_THAT(getNames(text()), ElementsAre("attention", "append"));
  EXPECT_THAT(
      getNames(text(R"("layers": [{"rope": {"theta": 10000}}], "qk_norm": true,
          "norms": {"dims": [512, 128]}, "gate": {"dim": 1024})")),
      ElementsAre("attention", "append", "rope", "norm_512", "norm_128",
                  "add_norm", "query_norm", "key_norm", "gate"));
  EXPECT_THAT(getNames(text(R"("kv_dtypes": ["bf16", "i8"])")),
              ElementsAre("attention", "append", "attention_i8", "append_i8"));
}

// Kinds of layers with the same rotary embedding share all but attention.
TEST(Model, EqualTextsAreOneProgram) {
  EXPECT_THAT(getNames(text(R"("layers": [
      {"name": "a", "rope": {"theta": 10000}},
      {"name": "b", "window": 128, "rope": {"theta": 10000}}])")),
              ElementsAre("attention_a", "append_a", "attention_b", "rope_a"));
  EXPECT_THAT(getNames(text(R"("layers": [
      {"name": "a", "rope": {"theta": 10000}},
      {"name": "b", "window": 128, "rope": {"theta": 20000}}])")),
              ElementsAre("attention_a", "append_a", "attention_b", "append_b",
                          "rope_a", "rope_b"));
}

TEST(Model, RanksShareHeads) {
  model::Overrides overrides;
  for (auto [ranks, queryHeads, kvHeads] :
       {std::tuple(1, 8, 2), {2, 4, 1}, {4, 2, 1}}) {
    overrides.tensorParallel = ranks;
    auto parsed =
        model::parseModel(text(R"("gate": {"dim": 64})"), "m.json", overrides);
    ASSERT_TRUE(bool(parsed)) << toString(parsed.takeError());
    EXPECT_EQ(parsed->queryHeads, queryHeads);
    EXPECT_EQ(parsed->kvHeads, kvHeads);
    EXPECT_EQ(parsed->gate->dim, 64 / ranks);
  }
  overrides.tensorParallel = 3;
  EXPECT_THAT(getError(text(), overrides),
              HasSubstr("m.json: 'query_heads': expected a multiple of 3 "
                        "ranks, but got 8"));
}

TEST(Model, TextsOfPrograms) {
  auto parsed = model::parseModel(
      text(R"("scale": 0.1, "softcap": 30, "sinks": true, "layout": "HND",
          "page_size": 32, "kv_dtypes": ["f8E4M3FN"], "layers": [{"window": 5,
          "rope": {"theta": 10000, "dims": 32, "pairs": "interleaved",
          "yarn": {"factor": 4, "fast": 32, "slow": 1, "context": 4096}}}])"),
      "m.json");
  ASSERT_TRUE(bool(parsed)) << toString(parsed.takeError());
  auto programs = model::makePrograms(*parsed);
  ASSERT_EQ(programs.size(), 3u);
  EXPECT_EQ(programs[0].name, "attention_f8E4M3FN");
  for (const char *part :
       {"!fi.paged_kv<32x2x64x!fi.scaled<f8E4M3FN, per = tensor, by = f32>, "
        "HND>",
        "memref<?x2x32x64xf8E4M3FN>", "scale(0.1)", "score(#fi.softcap<30.0>)",
        "sink(%sinks : tensor<8xf32>)",
        "mask(#fi.causal, #fi.window<left = 4>)"})
    EXPECT_THAT(programs[0].text, HasSubstr(part));
  EXPECT_THAT(
      programs[1].text,
      HasSubstr("pair<interleaved> dims(32) key(#fi.rotary<10000.0, "
                "#fi.yarn<factor = 4.0, fast = 32.0, slow = 1.0, context = "
                "4096>>)"));
  // Numbers whose shortest spelling has an exponent have a point as well.
  parsed = model::parseModel(text(R"("norms": {"dims": [64], "eps": 1e-6})"),
                             "m.json");
  ASSERT_TRUE(bool(parsed)) << toString(parsed.takeError());
  EXPECT_THAT(model::makePrograms(*parsed).back().text,
              HasSubstr("eps(1.0e-06)"));
}

TEST(Model, Latents) {
  std::string latent = R"({"model": "m", "query_heads": 16, "latent":
      {"rank": 512, "rope_dim": 64, "nope_dim": 128, "value_dim": 128},
      "layers": [{"rope": {"theta": 10000}}]})";
  EXPECT_THAT(getNames(latent),
              ElementsAre("attention", "append", "prefill", "rope"));
  auto parsed = model::parseModel(latent, "m.json");
  ASSERT_TRUE(bool(parsed));
  EXPECT_NEAR(parsed->scale, 0.07216878, 1e-8); // of 192 columns
}

TEST(Model, Mistakes) {
  for (
      auto [json, error] : std::vector<std::pair<std::string, std::string>>{
          {"[]", "'m.json': expected an object with the shapes of a model"},
          {"{", "'m.json' is not JSON: "},
          {"{}", "m.json: 'model': expected a name, but got nothing"},
          {R"({"model": "../up"})",
           "'model': expected a name of letters, digits and -._, but got"},
          {R"({"model": "m"})",
           "'query_heads': expected an integer from 1 to 1024, but got "
           "nothing"},
          {text(R"("page_size": 0)"),
           "'page_size': expected an integer from 1 to 65536, but got 0"},
          {text(R"("dtype": "f64")"),
           "'dtype': expected one of f16, bf16, f32, but got \"f64\""},
          {text(R"("kv_dtypes": ["f4"])"),
           "'kv_dtypes': expected types among bf16, f8E4M3FN, f8E5M2, i8, "
           "not f4"},
          {text(R"("kv_dtypes": [])"),
           "'kv_dtypes': expected a list of types of caches, but got []"},
          {text(R"("scale": -1)"),
           "'scale': expected a positive number, but got -1"},
          {text(R"("sinks": 1)"), "'sinks': expected true or false"},
          {text(R"("window": 5)"), "'window': expected one of the keys about"},
          {text(R"("norms": {"eps": 1e-5})"),
           "'norms.dims': expected a list of widths, but got nothing"},
          {text(R"("norms": {"dims": [0]})"),
           "'norms.dims': expected widths from 1 to 1048576"},
          {text(R"("gate": {"dim": 8, "activation": "relu"})"),
           "'gate.activation': expected one of silu, gelu, gelu_tanh"},
          {text(R"("layers": [{"rope": {}}])"),
           "'layers[0].rope.theta': expected a number above 1, but got "
           "nothing"},
          {text(R"("layers": [{"rope": {"theta": 10, "dims": 3}}])"),
           "'layers[0].rope.dims': expected an even number, but got 3"},
          {text(R"("layers": [{"rope": {"theta": 10, "dims": 66}}])"),
           "'layers[0].rope.dims': expected an integer from 2 to 64"},
          {text(R"("layers": [{"rope": {"theta": 10, "linear": {}}}])"),
           "'layers[0].rope.linear.factor': expected a positive number, but "
           "got nothing"},
          {text(R"("layers": [{}, {}])"),
           "'layers[0].name': expected a name, but got nothing"},
          {text(R"("layers": [{"name": "a"}, {"name": "a"}])"),
           "'layers[1].name': expected a name of its own for each kind of "
           "layer"},
          {text(R"("latent": {"rank": 512})"),
           "'latent.rope_dim': expected an integer"},
          {R"({"model": "m", "query_heads": 7, "kv_heads": 2, "head_dim": 64})",
           "'query_heads': expected a multiple of 2 KV heads, but got 7"},
          {R"({"model": "m", "query_heads": 4, "kv_heads": 2, "head_dim": 12})",
           "'head_dim': expected a multiple of 8, but got 12"}})
    EXPECT_THAT(getError(json), HasSubstr(error)) << json;
}

} // namespace
