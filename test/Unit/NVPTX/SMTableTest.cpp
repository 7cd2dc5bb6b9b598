//===- SMTableTest.cpp - the table of NVIDIA targets ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/SMTable.h"
#include "gmock/gmock.h"

using namespace fi;
using llvm::toString;

static std::vector<std::string> namesOf(const sm::Target &target) {
  std::vector<std::string> names;
  for (const sm::FeatureEntry *feature : target.getFeatures())
    names.push_back(feature->name.str());
  return names;
}

TEST(SMTable, HasTheElevenTargetsInOrder) {
  EXPECT_EQ(sm::getNames(), "sm_75, sm_80, sm_86, sm_87, sm_89, sm_90a, "
                            "sm_100a, sm_103a, sm_110a, sm_120a, sm_121a");
  for (const sm::Target &target : sm::getTargets()) {
    EXPECT_EQ(sm::lookup(target.name), &target);
    EXPECT_EQ(sm::lookupForDevice(target.Major, target.Minor), &target);
    EXPECT_EQ(target.isExact, target.name.back() == 'a') << target.name.str();
  }
  EXPECT_EQ(sm::lookup("sm_90"), nullptr);
  EXPECT_EQ(sm::lookup("cpu"), nullptr);
}

TEST(SMTable, LimitsAgreeWithEachOther) {
  for (const sm::Target &target : sm::getTargets()) {
    SCOPED_TRACE(target.name.str());
    EXPECT_EQ(target.maxSharedPerCTA + target.sharedReservedPerCTA,
              target.sharedPerSM);
    EXPECT_EQ(target.sharedPerSM % 1024, 0u);
    EXPECT_GE(target.maxWarpsPerSM * 32, target.maxThreadsPerCTA);
    EXPECT_EQ(target.tensorMemoryColumns > 0, target.has(sm::Tcgen05));
    EXPECT_EQ(target.maxClusterSize > 1, target.has(sm::Clusters));
    EXPECT_GT(target.hintSMs, 0);
    EXPECT_FALSE(llvm::errorToBool(sm::checkPTX(target, target.ptx)));
    EXPECT_GT(sm::getDriver(target.ptx), 11000u);
    for (const sm::FeatureEntry *feature : target.getFeatures()) {
      unsigned version = target.getPTX({sm::Feature(feature->index)});
      EXPECT_GE(version, feature->ptx);
      EXPECT_FALSE(llvm::errorToBool(sm::checkPTX(target, version)));
    }
  }
}

TEST(SMTable, FeaturesAreAskedForByName) {
  const sm::Target &ampere = *sm::lookup("sm_80");
  EXPECT_TRUE(ampere.has(sm::CpAsync));
  EXPECT_FALSE(ampere.has(sm::MmaFP8));
  EXPECT_FALSE(ampere.has(sm::Tma));
  EXPECT_FALSE(sm::lookup("sm_75")->has(sm::CpAsync));
  EXPECT_TRUE(sm::lookup("sm_90a")->has(sm::Wgmma));
  EXPECT_FALSE(sm::lookup("sm_100a")->has(sm::Wgmma));
  EXPECT_TRUE(sm::lookup("sm_121a")->has(sm::MmaBlockScale));
  EXPECT_FALSE(sm::lookup("sm_121a")->has(sm::Tcgen05));
  EXPECT_THAT(namesOf(ampere), testing::Contains("ldmatrix"));
  EXPECT_THAT(namesOf(ampere), testing::Not(testing::Contains("stmatrix")));
  unsigned index = 0;
  for (const sm::FeatureEntry &feature : sm::getFeatures()) {
    EXPECT_EQ(feature.index, index++);
    EXPECT_EQ(&sm::getFeature(sm::Feature(feature.index)), &feature);
    EXPECT_TRUE(llvm::any_of(sm::getTargets(), [&](const sm::Target &target) {
      return target.has(sm::Feature(feature.index));
    })) << feature.name.str();
  }
}

TEST(SMTable, PTXVersionsFollowFeatures) {
  const sm::Target &ada = *sm::lookup("sm_89");
  EXPECT_EQ(ada.getPTX({}), 78u);
  EXPECT_EQ(ada.getPTX({sm::CpAsync}), 78u);
  EXPECT_EQ(ada.getPTX({sm::CvtFP8, sm::MmaFP8}), 84u);
  EXPECT_EQ(sm::formatPTX(84), "8.4");
  EXPECT_EQ(sm::getDriver(84), 12040u);
  EXPECT_EQ(sm::getDriver(85), 0u);
  EXPECT_EQ(sm::getDriver(1000), 0u);
  EXPECT_EQ(toString(sm::checkPTX(*sm::lookup("sm_110a"), 87)),
            "expected a PTX version of sm_110a among 9.0, but got 8.7");
  EXPECT_EQ(toString(sm::checkPTX(*sm::lookup("sm_103a"), 89)),
            "expected a PTX version of sm_103a among 8.8, 9.0, but got 8.9");
}

TEST(SMTable, UnknownNamesComeWithASuggestion) {
  EXPECT_EQ(sm::suggest("sm_90"), "sm_90a");
  EXPECT_EQ(sm::suggest("sm80"), "sm_80");
  EXPECT_EQ(sm::suggest("compute_100"), "sm_100a");
  EXPECT_EQ(sm::suggest("SM_120F"), "sm_120a");
  EXPECT_EQ(sm::suggest("sm_81"), "sm_80");
  EXPECT_EQ(sm::suggest("tpu"), "");
  EXPECT_EQ(sm::suggest(""), "");
  EXPECT_EQ(toString(sm::find("sm_90").takeError()),
            ("expected one of the targets " + sm::getNames() +
             ", but got 'sm_90'; did you mean 'sm_90a'?")
                .str());
  EXPECT_EQ(*sm::find("sm_86"), sm::lookup("sm_86"));
}

TEST(SMTable, DevicesRunTheNearestOlderCode) {
  // A chip that the table does not have, between two that it has.
  EXPECT_EQ(sm::lookupForDevice(8, 8), sm::lookup("sm_87"));
  EXPECT_EQ(sm::lookupForDevice(13, 0), sm::lookup("sm_89"));
  EXPECT_EQ(sm::lookupForDevice(7, 0), nullptr);
  EXPECT_EQ(sm::lookupForDevice(264, 0), nullptr);
}

TEST(SMTable, NativeAsksTheCaller) {
  auto hopper = sm::findNative([] { return std::make_pair(9u, 0u); });
  ASSERT_TRUE(bool(hopper));
  EXPECT_EQ(*hopper, sm::lookup("sm_90a"));
  EXPECT_THAT(
      toString(sm::findNative([]() { return std::nullopt; }).takeError()),
      testing::HasSubstr("expected a CUDA device for the target 'native', but "
                         "found none; name one of sm_75, "));
  EXPECT_EQ(
      toString(
          sm::findNative([] { return std::make_pair(7u, 0u); }).takeError()),
      "expected a CUDA device of compute capability 7.5 or later, but found "
      "7.0");
}
