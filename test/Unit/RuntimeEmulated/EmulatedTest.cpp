//===- EmulatedTest.cpp - The runtime on an emulated GPU ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX through package, plan and run: append, split attention, merges, padding,
// on chips with few and with many multiprocessors.
//
//===----------------------------------------------------------------------===//
#include "Smoke.h"

#include "fi-emulator/fi_emulator_driver.h"

#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <sstream>

namespace {

struct Destroy {
  void operator()(const fi_driver *driver) const {
    fi_emulator_driver_destroy(driver);
  }
};
using DriverPtr = std::unique_ptr<const fi_driver, Destroy>;

std::string readFile(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Emulated, PassesWhatGpusMustPass) {
  for (const char *options : {"check,sms=3", "check,sms=132,seed=7"}) {
    DriverPtr driver(fi_emulator_driver("sm_80", options));
    ASSERT_TRUE(driver) << fi_emu_last_error();
    fi::smoke::Options smoke;
    smoke.package = FI_NAIVE_PACKAGE;
    smoke.small = true;
    fi::smoke::RecordingDriver recording(driver.get());
    smoke.capture = recording.capture();
    EXPECT_EQ(fi::smoke::runSmoke(recording.table(), smoke), 0);
    EXPECT_GT(fi_emulator_driver_instructions(driver.get()), 10000u);
  }
}

TEST(Emulated, UnknownChips) {
  EXPECT_EQ(fi_emulator_driver("sm_1", nullptr), nullptr);
  EXPECT_NE(std::string(fi_emu_last_error()).find("sm_1"), std::string::npos);
  EXPECT_EQ(fi_emulator_driver("sm_80", "fast"), nullptr);
  EXPECT_NE(std::string(fi_emu_last_error()).find("fast"), std::string::npos);
}

class OneDevice : public ::testing::Test {
protected:
  void SetUp() override {
    driver.reset(fi_emulator_driver("sm_80", "check,sms=4"));
    ASSERT_TRUE(driver) << fi_emu_last_error();
    ASSERT_EQ(fi_device_open(driver.get(), 0, &device), FI_OK);
    manifest = readFile(FI_NAIVE_PACKAGE "/manifest.json");
    ptx = readFile(FI_NAIVE_PACKAGE "/kernels.ptx");
  }
  void TearDown() override { fi_device_release(device); }

  std::string load() {
    fi_code code = {FI_DRIVER_PTX, ptx.data(), ptx.size()};
    fi_package *package = nullptr;
    fi_status status = fi_package_from_code(manifest.data(), manifest.size(),
                                            &code, 1, &package);
    if (status == FI_OK)
      status = fi_package_load(package, device);
    fi_package_release(package);
    return status == FI_OK ? "" : fi_last_error();
  }
  void replace(std::string &text, const std::string &from,
               const std::string &to) {
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }

  DriverPtr driver;
  fi_device *device = nullptr;
  std::string manifest, ptx;
};

TEST_F(OneDevice, LoadsAndRefuses) {
  EXPECT_EQ(load(), "");
  std::string good = ptx;
  replace(ptx, "shfl.sync.bfly", "shfl.sync.sideways");
  std::string said = load();
  EXPECT_NE(said.find("its PTX cannot be loaded on device 0 (emulated sm_80)"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("sideways"), std::string::npos) << said;
  ptx = good;
  replace(manifest, "\"sm_80\"", "\"sm_90\"");
  EXPECT_EQ(load(), "package 'naive': compiled for sm_90 or later, but device "
                    "0 (emulated sm_80) is sm_80; compile the program for "
                    "sm_80");
}

/// Kernels that do wrong are reported by the run that launches them.
TEST_F(OneDevice, ReportsAreSentences) {
  // A fill kernel that writes one element too far.
  ptx = ".version 7.4\n.target sm_80\n.address_size 64\n"
        ".visible .entry fill(";
  for (int i = 0; i < 12; ++i)
    ptx += std::string(i ? "," : "") + "\n.param .u64 p" + std::to_string(i);
  ptx += ")\n{\n.reg .b64 %r<4>;\nld.param.u64 %r1, [p0];\n"
         "ld.param.u64 %r2, [p1];\nshl.b64 %r2, %r2, 2;\n"
         "add.u64 %r1, %r1, %r2;\nst.global.u32 [%r1], 1;\nret;\n}\n";
  manifest = R"({"manifest":1,"abi":1,"program":"wrong",
    "target":{"kind":"cuda","chip":"sm_80"},
    "arguments":[{"name":"q","group":"run","kind":"tensor","dtype":"f32",
                  "shape":[null,1]}],
    "results":[{"name":"r","dtype":"f32","shape":[null,1],"rows_of":"q"}],
    "stages":[{"op":"rows","name":"fill0","rows_of":"q","heads":1,
      "buffers":["r"],"bodies":[{"symbol":"fill","tile_rows":64,
      "launch":{"threads":1}}]}]})";
  fi_code code = {FI_DRIVER_PTX, ptx.data(), ptx.size()};
  fi_package *package = nullptr;
  ASSERT_EQ(fi_package_from_code(manifest.data(), manifest.size(), &code, 1,
                                 &package),
            FI_OK)
      << fi_last_error();
  fi_plan_options options = {};
  options.struct_size = sizeof(options);
  options.device = device;
  options.rows = 8;
  fi_plan *plan = nullptr;
  ASSERT_EQ(fi_plan_create(package, nullptr, 0, &options, &plan), FI_OK)
      << fi_last_error();
  float host[16] = {};
  int64_t shape[] = {8, 1};
  fi_value q = {};
  q.kind = FI_VALUE_TENSOR;
  q.as.tensor = {host, FI_F32, 2, shape, nullptr};
  fi_tensor r = {host + 8, FI_F32, 2, shape, nullptr};
  auto run = [&](fi_status expected) {
    EXPECT_EQ(fi_run_device(plan, 0, &q, 1, &r, 1, nullptr, 0, nullptr),
              expected);
    return std::string(fi_last_error());
  };
  EXPECT_EQ(run(FI_INVALID_RUN),
            "run: operand 'q': expected memory of device 0 (emulated sm_80), "
            "but got host memory; copy it to the device first");
  // Memory of the host may be lent to the emulator.
  ASSERT_EQ(fi_emulator_driver_register(driver.get(), host, sizeof(host), true),
            0);
  std::string said = run(FI_DEVICE_ERROR);
  EXPECT_NE(said.find("run: fill0 of 'wrong', generation 1 of the plan: kernel "
                      "'fill' on 1 CTAs, CTA 0 (head 0, rows 0 to 7): emulated "
                      "device 0 (emulated sm_80): "),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("st.global.u32 [%r1], 1"), std::string::npos) << said;
  ASSERT_EQ(fi_emulator_driver_unregister(driver.get(), host), 0);
  fi_plan_destroy(plan);
  fi_package_release(package);
}

} // namespace
