//===- PackageTest.cpp - Reading packages, good and damaged ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Manifests that are cut, changed or newer must give a sentence and never a
// crash. Packages on disk are made of FakeKernels.c.
//
//===----------------------------------------------------------------------===//
#include "FakePackage.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

using namespace fi::test;

namespace {

FakeProgram richProgram() {
  FakeProgram program;
  program.positions = program.origin = true;
  program.bodies = {{4, 16, 8, 128, 1, 1, 1}, {16, 16, -1, 128, 1, 1, 1}};
  program.extraArguments = json::parse(
      R"([{"name": "starts", "group": "plan", "kind": "tensor", "dtype": "i64",
           "shape": [null, null]},
          {"name": "n", "group": "plan", "kind": "scalar", "dtype": "index"}])");
  program.mask = json::parse(
      R"({"terms": [
        {"lo": [["load", "starts", ["request"],
                 ["sub", ["first", "starts", ["request"],
                          ["add", ["q"], ["const", 1]]], ["const", 1]]]],
         "hi": [["q"], ["min", ["kv_len"], ["scalar", "n"]]],
         "exact": false}]})");
  program.split = {{"policy", "fixed"}, {"keys", 64}};
  return program;
}

fi_status open(const std::string &text, fi_package **package) {
  return fi_package_from_memory(text.data(), text.size(), findFakeKernel,
                                nullptr, package);
}

void expectRefused(const json &manifest, const std::string &sentence,
                   fi_status expected = FI_INVALID_PACKAGE) {
  fi_package *package = nullptr;
  EXPECT_EQ(open(manifest.dump(), &package), expected);
  EXPECT_EQ(fi_last_error(), sentence);
  EXPECT_EQ(package, nullptr);
}

TEST(Package, TellsItsArguments) {
  PackagePtr package(openFake(richProgram().manifest()));
  ASSERT_TRUE(package) << fi_last_error();
  const fi_package *p = package.get();
  EXPECT_STREQ(fi_package_program(p), "counting");
  EXPECT_EQ(fi_package_argument_count(p, FI_GROUP_PLAN), 8);
  EXPECT_EQ(fi_package_argument_count(p, FI_GROUP_RUN), 4);
  EXPECT_EQ(fi_package_argument_count(p, FI_GROUP_RESULT), 2);
  EXPECT_EQ(fi_package_argument_count(p, 77), 0);
  EXPECT_EQ(fi_package_argument_index(p, FI_GROUP_PLAN, "last"), 3);
  EXPECT_EQ(fi_package_argument_index(p, FI_GROUP_RUN, "last"), -1);
  EXPECT_EQ(fi_package_argument_index(p, FI_GROUP_RESULT, "result1"), 1);
  fi_argument_info info;
  ASSERT_EQ(fi_package_argument(p, FI_GROUP_RUN, 2, &info), FI_OK);
  EXPECT_STREQ(info.name, "k");
  EXPECT_EQ(info.kind, FI_KIND_POOL);
  EXPECT_EQ(info.rank, 4);
  EXPECT_EQ(info.shape[0], -1);
  EXPECT_EQ(info.shape[2], 4);
  ASSERT_EQ(fi_package_argument(p, FI_GROUP_RESULT, 0, &info), FI_OK);
  EXPECT_EQ(info.rows_of, 1);
  ASSERT_EQ(fi_package_argument(p, FI_GROUP_PLAN, 7, &info), FI_OK);
  EXPECT_EQ(info.kind, FI_KIND_SCALAR);
  EXPECT_EQ(info.dtype, FI_INDEX);
  EXPECT_EQ(fi_package_argument(p, FI_GROUP_RUN, 4, &info),
            FI_INVALID_ARGUMENT);
}

TEST(Package, Versions) {
  json manifest = FakeProgram().manifest();
  manifest["manifest"] = 2;
  expectRefused(
      manifest,
      "manifest: version 2 is newer than this runtime, which reads up "
      "to version 1; update the runtime or compile the package with "
      "an older compiler");
  manifest["manifest"] = 1;
  manifest["abi"] = 7;
  expectRefused(manifest,
                "manifest: kernel abi 7 is newer than this runtime's, "
                "which is 1; compile the package again");
  manifest["abi"] = 0;
  expectRefused(manifest,
                "manifest: kernel abi 0 is older than this runtime's, "
                "which is 1; compile the package again");
}

TEST(Package, Sentences) {
  auto with = [](const char *pointer, json value) {
    json manifest = richProgram().manifest();
    manifest[json::json_pointer(pointer)] = std::move(value);
    return manifest;
  };
  expectRefused(with("/target/kind", "sm_90a"),
                "package 'counting': target 'sm_90a' is not supported by this "
                "runtime, which runs 'cpu' and 'cuda'; compile the program for "
                "one of them",
                FI_UNSUPPORTED);
  expectRefused(with("/stages/0/bodies/0/symbol", "nobody"),
                "package 'counting': kernel 'nobody' is named in the manifest "
                "but missing from the code");
  expectRefused(with("/stages/0/view/keys", "kk"),
                "manifest.stages[0].view.keys: expected the name of a run "
                "tensor, but got \"kk\"");
  expectRefused(with("/stages/0/view/indptr", "q"),
                "manifest.stages[0].view.indptr: expected the name of a plan "
                "tensor, but got \"q\"");
  expectRefused(with("/stages/0/heads/q", 5),
                "manifest.stages[0].heads.q: expected a multiple of the KV "
                "heads, 2, but got 5");
  expectRefused(with("/stages/0/heads/q", 6),
                "manifest.stages[0].query: expected an argument with size 6 in "
                "dimension 1, not 4, but got \"q\"");
  expectRefused(with("/stages/0/view/page", 0),
                "manifest.stages[0].view.page: expected an integer from 1 to "
                "16777216, but got 0");
  expectRefused(with("/stages/0/op", "convolution"),
                "manifest.stages[0].op: expected 'attention', 'rows' or "
                "'append', but got \"convolution\"");
  expectRefused(with("/stages/0/bodies/0/max_rows", nullptr),
                "manifest.stages[0].bodies[1].max_rows: expected bodies by "
                "rising max_rows, but got null");
  expectRefused(with("/stages/0/mask/terms/0/hi/0", json::array({"qq"})),
                "manifest.stages[0].mask.terms[0].hi[0][0]: expected the name "
                "of an expression of this manifest version, but got \"qq\"");
  expectRefused(
      with("/stages/0/bodies/0/cost/tile", -1),
      "manifest.stages[0].bodies[0].cost.tile: expected a number from "
      "0 to 1e15, but got -1");
  expectRefused(with("/arguments/1/name", "qo"),
                "manifest.arguments[1].name: expected a name that no other "
                "argument has, but got \"qo\"");
  expectRefused(
      with("/arguments/0/dtype", "f64"),
      "manifest.arguments[0].dtype: expected one of f32, f16, bf16, "
      "i32, i64, i8, i1, index, f8E4M3FN, f8E5M2, f8E8M0FNU, but got \"f64\"");
  expectRefused(json::array(), "manifest: expected an object, but got []");
  json manifest = richProgram().manifest();
  manifest["stages"][0].erase("buffers");
  expectRefused(manifest,
                "manifest.stages[0]: expected a member 'buffers', but "
                "there is none");
}

TEST(Package, Features) {
  json manifest = FakeProgram().manifest();
  manifest["target"]["cpu"] = "x86-64-v9";
  manifest["target"]["features"] = json::array({"sse3", "avx9000"});
  expectRefused(manifest,
                "package 'counting': compiled for cpu 'x86-64-v9' with feature "
                "'avx9000', which this machine does not have; compile it for "
                "this machine",
                FI_UNSUPPORTED);
  manifest["target"]["features"] = 3;
  expectRefused(manifest,
                "manifest.target.features: expected an array, but got 3");
  manifest["target"]["features"] = json::array({7});
  expectRefused(manifest,
                "manifest.target.features[0]: expected a string, but got 7");
#if defined(__x86_64__)
  // Every x86-64 machine of the last fifteen years.
  manifest["target"]["features"] = json::array({"sse3", "ssse3"});
  EXPECT_TRUE(PackagePtr(openFake(manifest))) << fi_last_error();
#endif
}

TEST(Package, CodeOfAnotherAbi) {
  static const int32_t other = 99;
  auto lookup = [](void *context, const char *symbol) -> void * {
    if (std::string(symbol) == FI_ABI_VERSION_SYMBOL)
      return context;
    return findFakeKernel(nullptr, symbol);
  };
  std::string text = FakeProgram().manifest().dump();
  fi_package *package = nullptr;
  EXPECT_EQ(fi_package_from_memory(text.data(), text.size(), lookup,
                                   const_cast<int32_t *>(&other), &package),
            FI_INVALID_PACKAGE);
  EXPECT_STREQ(fi_last_error(),
               "package 'counting': its code has kernel abi 99, but this "
               "runtime has 1; compile the package again");
  EXPECT_EQ(fi_package_from_memory(text.data(), text.size(), lookup, nullptr,
                                   &package),
            FI_INVALID_PACKAGE);
  EXPECT_STREQ(fi_last_error(), "package 'counting': symbol "
                                "'fi_package_abi_version' is missing from its "
                                "code");
}

TEST(Package, EveryTruncationIsRefused) {
  std::string text = richProgram().manifest().dump();
  for (size_t length = 0; length < text.size(); ++length) {
    fi_package *package = nullptr;
    ASSERT_EQ(open(text.substr(0, length), &package), FI_INVALID_PACKAGE);
    ASSERT_NE(std::string(fi_last_error()).find("manifest: expected JSON"),
              std::string::npos);
  }
}

/// Replaces every value by every kind of value; whatever opens must also plan
/// or refuse to.
TEST(Package, WrongTypesNeverCrash) {
  FakeProgram program = richProgram();
  json manifest = program.manifest();
  FakeBatch batch;
  Recorder recorder;
  recorder.visible = [](const Pair &) { return false; };
  batch.queryLengths = {3, 20};
  batch.keyLengths = {9, 50};
  batch.origins = {0, 4};
  batch.positions.assign(23, 7);
  batch.extras = {{false, 0, {0, 3, 0, 5}, {2, 2}}, {true, 30, {}, {}}};
  batch.bind(program, recorder);
  const json replacements[] = {nullptr,
                               true,
                               0,
                               -1,
                               1,
                               7,
                               INT64_MAX,
                               UINT64_MAX,
                               1.5,
                               "",
                               "q",
                               "qo",
                               "pages",
                               "starts",
                               "fixed",
                               json::array(),
                               json::object(),
                               json::array({nullptr, nullptr}),
                               json::array({"q"}),
                               json::array({0})};
  int64_t opened = 0, refused = 0;
  json flat = manifest.flatten();
  std::vector<std::string> pointers;
  for (auto it = flat.begin(); it != flat.end(); ++it)
    for (std::string path = it.key(); !path.empty();
         path.resize(path.rfind('/')))
      pointers.push_back(path);
  std::sort(pointers.begin(), pointers.end());
  pointers.erase(std::unique(pointers.begin(), pointers.end()), pointers.end());
  for (const std::string &pointer : pointers)
    for (const json &replacement : replacements) {
      json changed = manifest;
      changed[json::json_pointer(pointer)] = replacement;
      PackagePtr package(openFake(changed));
      if (!package) {
        ++refused;
        ASSERT_STRNE(fi_last_error(), "");
        continue;
      }
      ++opened;
      PlanPtr plan = planBatch(package.get(), batch, defaultOptions(2));
      if (plan) {
        char *text = nullptr;
        ASSERT_EQ(fi_plan_explain(plan.get(), &text), FI_OK);
        fi_string_free(text);
      }
    }
  EXPECT_GT(opened, 100);
  EXPECT_GT(refused, 1000);
}

TEST(Package, DamagedBytesNeverCrash) {
  std::mt19937 random(17);
  std::string text = richProgram().manifest().dump();
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = text;
    for (int n = 1 + int(random() % 3); n > 0; --n)
      damaged[random() % damaged.size()] = char(random());
    fi_package *package = nullptr;
    if (open(damaged, &package) != FI_OK) {
      ASSERT_STRNE(fi_last_error(), "");
    }
    fi_package_release(package);
  }
}

TEST(Package, DeepNestingIsRefused) {
  fi_package *package = nullptr;
  EXPECT_EQ(open(std::string(200000, '['), &package), FI_INVALID_PACKAGE);
  json bound = json::array({"q"});
  for (int i = 0; i < 100; ++i)
    bound = json::array({"add", bound, json::array({"const", 1})});
  json manifest = FakeProgram().manifest();
  manifest["stages"][0]["mask"]["terms"][0]["hi"] = json::array({bound});
  EXPECT_EQ(open(manifest.dump(), &package), FI_INVALID_PACKAGE);
  EXPECT_NE(std::string(fi_last_error()).find("at most 64 levels"),
            std::string::npos)
      << fi_last_error();
}

/// A directory that goes away with its files.
class Directory {
public:
  Directory() {
    std::string pattern = ::testing::TempDir() + "fi-package-XXXXXX";
    path = mkdtemp(pattern.data()) ? pattern : "";
  }
  ~Directory() {
    unlink((path + "/manifest.json").c_str());
    unlink((path + "/kernels.so").c_str());
    rmdir(path.c_str());
  }
  void write(const char *name, const std::string &text) const {
    std::ofstream(path + "/" + name, std::ios::binary) << text;
  }
  std::string path;
};

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(Package, OpensDirectories) {
  Directory directory;
  ASSERT_NE(directory.path, "");
  fi_package *package = nullptr;
  EXPECT_EQ(fi_package_open(directory.path.c_str(), &package),
            FI_INVALID_PACKAGE);
  EXPECT_EQ(std::string(fi_last_error()),
            "package: cannot open '" + directory.path +
                "/manifest.json': No such file or directory");
  FakeProgram program;
  directory.write("manifest.json", program.manifest().dump());
  EXPECT_EQ(fi_package_open(directory.path.c_str(), &package),
            FI_INVALID_PACKAGE);
  EXPECT_NE(std::string(fi_last_error()).find("cannot load its code"),
            std::string::npos);
  std::string code = readFile(FI_FAKE_KERNELS);
  ASSERT_GT(code.size(), 1000u);
  // Cut anywhere before the last byte that is loaded.
  for (size_t length :
       {size_t(0), size_t(40), size_t(64), size_t(700), code.size() / 4}) {
    directory.write("kernels.so", code.substr(0, length));
    EXPECT_EQ(fi_package_open(directory.path.c_str(), &package),
              FI_INVALID_PACKAGE);
    EXPECT_EQ(std::string(fi_last_error()),
              "package '" + directory.path +
                  "': cannot load its code: expected a whole ELF object, but "
                  "'" +
                  directory.path +
                  "/kernels.so' is truncated or damaged; compile the package "
                  "again");
  }
  directory.write("kernels.so", code);
  ASSERT_EQ(fi_package_open(directory.path.c_str(), &package), FI_OK)
      << fi_last_error();
  // The plan keeps the code when the handle is given back.
  FakeBatch batch;
  Recorder recorder;
  batch.queryLengths = {1, 1};
  batch.keyLengths = {4, 4};
  batch.bind(program, recorder);
  PlanPtr plan = planBatch(package, batch, defaultOptions(2));
  fi_package_release(package);
  ASSERT_TRUE(plan) << fi_last_error();
  ASSERT_EQ(runBatch(plan.get(), batch), FI_OK) << fi_last_error();
  EXPECT_EQ(batch.output[0], 1);
  EXPECT_EQ(batch.output[4 * program.vo], 1);
}

} // namespace
