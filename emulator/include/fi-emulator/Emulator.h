//===- Emulator.h - PTX on the host -----------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs PTX text on the CPU, in the shape of a driver: a device, memory,
// modules, functions, launches. Pointers of the device are host addresses of
// memory that was allocated or registered here; anything else that a kernel
// touches is reported. See docs/emulator.md.
//
//   auto device = Device::create("sm_80", options, error);
//   uint64_t x = device->memAlloc(4096, error);
//   Module *module = device->moduleLoad("k.ptx", text, error);
//   const Function *f = module->getFunction("kernel", error);
//   LaunchResult r = device->launch(*f, {grid, block, sharedBytes, params,
//   size});
//
// A device is used by one thread at a time.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_EMULATOR_H
#define FI_EMULATOR_EMULATOR_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#if defined(FI_EMULATOR_STATIC)
#define FI_EMULATOR_EXPORT
#else
#define FI_EMULATOR_EXPORT __attribute__((visibility("default")))
#endif

namespace fi::emulator {

enum class ReportKind : int {
  OutOfBounds,           // an address that nothing was allocated at
  Misaligned,            // an address that is no multiple of the access
  Race,                  // two accesses that nothing orders
  UninitializedMemory,   // a read of bytes that nobody wrote
  UninitializedRegister, // a read of a register before it was written
  PendingCopy,           // a cp.async that was not waited for is touched
  NonCoherent,           // ld.global.nc of what the launch writes
  Divergence,            // an aligned instruction executed by part of a warp
  BarrierMisuse,         // counts that disagree or are not multiples of a warp
  Deadlock,              // all warps wait for what cannot happen
  StepLimit,             // more instructions than the limit
  InvalidInstruction,    // an operand without a meaning
  Trap,                  // trap, brkpt, a failed assertion
  ProxyFence,    // the async proxy reads what no fence.proxy.async follows
  MbarrierFault, // counts and phases that cannot be, no mbarrier at an address
  WgmmaFault,    // registers of a wgmma in flight, a missing wgmma.fence
  RegisterFault, // setmaxnreg with a count that it cannot have
};
FI_EMULATOR_EXPORT const char *nameOf(ReportKind kind);

/// A place in PTX and, by `.loc`, in what it was made of.
struct Place {
  uint32_t ptxLine = 0;
  std::string ptx; // the line's text
  std::string file;
  uint32_t line = 0, column = 0;
  /// "file:line" of the places where it was inlined, from the inside.
  std::vector<std::string> inlinedAt;
};

struct Report {
  ReportKind kind{};
  std::string message;
  Place place;
  /// The other access of a race.
  bool hasOther = false;
  Place other;
  std::string kernel;
  std::array<uint32_t, 3> block{};
  uint32_t warp = 0;
  uint32_t lanes = 0;               // mask
  std::array<uint32_t, 3> thread{}; // of the first lane
  uint64_t address = 0;
  /// Times that it happened at this place.
  uint64_t count = 1;

  /// All of it, a few lines.
  FI_EMULATOR_EXPORT std::string str() const;
};

struct Options {
  /// Races, reads of what was not written, cp.async discipline.
  bool check = false;
  /// Reads of shared and allocated memory that nobody wrote are reported too.
  bool checkUninitialized = true;
  /// The order of warps and blocks, and when copies read their source.
  uint64_t seed = 0;
  uint32_t multiprocessors = 132;
  uint32_t sharedPerBlock = 227 * 1024;
  uint32_t sharedPerMultiprocessor = 228 * 1024;
  uint32_t threadsPerMultiprocessor = 2048;
  uint32_t blocksPerMultiprocessor = 32;
  /// Warp instructions of one launch; 0 is unlimited.
  uint64_t stepLimit = 0;
  uint32_t maxReports = 100;
  /// Stop at the first report.
  bool stopAtFirst = false;
  /// Count bank conflicts and sectors (Statistics); costs some speed.
  bool countAccesses = false;
  /// A driver (fi_emulator_driver) says on the error output how many
  /// instructions it ran in which time, when it is destroyed.
  bool printTime = false;
};

/// "check", "nocheck", "time", "stats", "stop", "seed=N", "steps=N", "sms=N",
/// separated by commas; later ones win.
/// False and a sentence if something else is there.
FI_EMULATOR_EXPORT bool parseOptions(std::string_view text, Options &options,
                                     std::string &error);

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

struct LaunchConfig {
  Dim3 grid, block;
  uint32_t dynamicShared = 0;
  /// The parameters laid out as the kernel declares them.
  const void *params = nullptr;
  size_t paramBytes = 0;
};

/// What cuTensorMapEncodeTiled takes; numbers are those of the driver.
struct TensorMapConfig {
  enum class Type : uint32_t {
    U8,
    U16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
    BF16,
    F32Flushed,
    TF32,
    TF32Flushed,
  };
  enum class Swizzle : uint32_t { None, Bytes32, Bytes64, Bytes128 };
  Type type = Type::F16;
  uint32_t rank = 1;
  uint64_t address = 0;
  uint64_t dims[5] = {1, 1, 1, 1, 1};
  /// Bytes, of dimensions 1 to rank - 1.
  uint64_t strides[4] = {0, 0, 0, 0};
  uint32_t box[5] = {1, 1, 1, 1, 1};
  uint32_t elementStrides[5] = {1, 1, 1, 1, 1};
  uint32_t interleave = 0; // none alone is emulated
  Swizzle swizzle = Swizzle::None;
  uint32_t promotion = 0; // of L2: nothing here
  uint32_t fill = 0;      // what is outside the tensor: 0 zeros, 1 NaNs
};
constexpr size_t tensorMapBytes = 128;
/// Fills the 128 bytes at `out`, which are aligned to 64, with a map for the
/// emulator (a GPU's driver makes others). False, and a sentence: what the
/// driver refuses.
FI_EMULATOR_EXPORT bool encodeTensorMap(const TensorMapConfig &config,
                                        void *out, std::string &error);

struct Statistics {
  uint64_t warpInstructions = 0;
  /// By mnemonic, sorted by name: `mma`, `ld.global`, `ld.shared`...
  std::vector<std::pair<std::string, uint64_t>> byMnemonic;
  /// Accesses of shared memory by warps, and the passes over the 32 banks that
  /// they took: equal without conflicts.
  uint64_t sharedAccesses = 0, sharedPasses = 0;
  /// Accesses of global memory by warps, and the 32-byte sectors they touched.
  uint64_t globalAccesses = 0, globalSectors = 0;
  double seconds = 0;
  /// Of the processor that ran the launch.
  double processorSeconds = 0;
};

struct LaunchResult {
  /// Empty, or why the launch did not run or did not finish.
  std::string error;
  std::vector<Report> reports;
  Statistics statistics;
  bool ok() const { return error.empty() && reports.empty(); }
};

struct ParameterInfo {
  std::string name;
  uint64_t offset, bytes, align;
  /// The declared type, "u64", "b8"...
  std::string type;
};

class Function {
public:
  virtual ~Function() = default;
  virtual const std::string &name() const = 0;
  virtual const std::vector<ParameterInfo> &parameters() const = 0;
  virtual size_t parameterBytes() const = 0;
  virtual uint32_t staticSharedBytes() const = 0;
  virtual uint32_t localBytes() const = 0;
  /// Registers of PTX; and the most that are live at once, in words a thread.
  virtual uint32_t virtualRegisters() const = 0;
  virtual uint32_t liveRegisters() const = 0;
  virtual uint32_t instructions() const = 0;
  /// From .maxntid or .reqntid; 0 where none is given.
  virtual Dim3 maxThreads() const = 0;
};

class Module {
public:
  virtual ~Module() = default;
  virtual const std::string &name() const = 0;
  virtual std::vector<const Function *> functions() const = 0;
  /// Null and a sentence if there is none of the name.
  virtual const Function *getFunction(std::string_view name,
                                      std::string &error) const = 0;
  /// The address and size of a global variable; false if there is none.
  virtual bool getGlobal(std::string_view name, uint64_t &address,
                         size_t &bytes) const = 0;
};

class Device {
public:
  /// `target`: sm_75, sm_80, sm_90a... Null and a sentence if unknown.
  FI_EMULATOR_EXPORT static std::unique_ptr<Device>
  create(std::string_view target, const Options &options, std::string &error);
  virtual ~Device() = default;

  virtual Options &options() = 0;
  virtual const std::string &target() const = 0;

  /// Memory of the device, aligned to 256 bytes. 0 and a sentence on failure.
  virtual uint64_t memAlloc(size_t bytes, std::string &error) = 0;
  virtual bool memFree(uint64_t address, std::string &error) = 0;
  /// Memory of the host that kernels may touch. Counts as written.
  virtual bool registerMemory(void *pointer, size_t bytes, bool writable,
                              std::string &error) = 0;
  virtual bool unregisterMemory(void *pointer, std::string &error) = 0;
  /// Copies check the device's side and mark what they write.
  virtual bool memcpyToDevice(uint64_t to, const void *from, size_t bytes,
                              std::string &error) = 0;
  virtual bool memcpyToHost(void *to, uint64_t from, size_t bytes,
                            std::string &error) = 0;
  virtual bool memset(uint64_t to, uint8_t value, size_t bytes,
                      std::string &error) = 0;

  /// Null and a sentence with line on failure. `name` is for messages.
  virtual Module *moduleLoad(std::string_view name, std::string_view ptx,
                             std::string &error) = 0;
  virtual void moduleUnload(Module *module) = 0;

  /// Blocks of this shape that a multiprocessor holds at once.
  virtual uint32_t occupancy(const Function &function, Dim3 block,
                             uint32_t dynamicShared) const = 0;
  virtual LaunchResult launch(const Function &function,
                              const LaunchConfig &config) = 0;
};

} // namespace fi::emulator

#endif // FI_EMULATOR_EMULATOR_H
