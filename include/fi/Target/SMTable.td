//===- SMTable.td - NVIDIA targets: limits and features ----*- tablegen -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that knows which SM has what. Everything else asks for a
// feature or a limit (fi/Target/SMTable.h). docs/targets.md is made from this
// file; test/Target/GPU/check_features.py compares it with ptxas.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_SMTABLE_TD
#define FI_TARGET_SMTABLE_TD

include "llvm/TableGen/SearchableTable.td"

/// An instruction, or a group of them that comes together. `PTX` is the lowest
/// version of the PTX ISA that has it, times ten.
class SMFeature<int index, string spelling, int ptx, string summary> {
  string Spelling = spelling;
  bits<8> Index = index;
  bits<8> PTX = ptx;
  string Summary = summary;
  string Enumerator = NAME;
  /// Other targets have the instruction too, but should not use it.
  bit IsAboutSpeed = 0;
}

// Indices are positions in a mask of 64 bits; nothing stores them.
def MmaF16 : SMFeature<0, "mma_f16", 65, "mma.sync m16n8k8 of f16, accumulated in f32">;
def MmaF16K16 : SMFeature<1, "mma_f16_k16", 70, "mma.sync m16n8k16 of f16">;
def MmaBF16 : SMFeature<2, "mma_bf16", 70, "mma.sync of bf16">;
def MmaTF32 : SMFeature<3, "mma_tf32", 70, "mma.sync of tf32">;
def MmaInt8 : SMFeature<4, "mma_int8", 70, "mma.sync m16n8k32 of s8 and u8">;
def MmaFP8 : SMFeature<5, "mma_fp8", 84, "mma.sync of e4m3 and e5m2">;
def MmaF8F6F4 : SMFeature<6, "mma_f8f6f4", 87, "mma.sync of any pair of FP8, FP6 and FP4">;
def MmaBlockScale : SMFeature<7, "mma_block_scale", 87, "mma.sync with a scale per block (MXFP8, MXFP4, NVFP4)">;
def Ldmatrix : SMFeature<8, "ldmatrix", 65, "ldmatrix of 8x8 tiles of 16 bits">;
def LdmatrixB8 : SMFeature<9, "ldmatrix_b8", 86, "ldmatrix of tiles of 8, 6 and 4 bits">;
def Stmatrix : SMFeature<10, "stmatrix", 78, "stmatrix">;
def Movmatrix : SMFeature<11, "movmatrix", 78, "movmatrix: transposes a tile in registers">;
def CpAsync : SMFeature<12, "cp_async", 70, "cp.async with groups and zero fill">;
def L2Prefetch : SMFeature<13, "l2_prefetch", 74, "loads that skip L1 and prefetch 128 bytes to L2">;
def BulkCopy : SMFeature<14, "bulk_copy", 80, "cp.async.bulk">;
def Tma : SMFeature<15, "tma", 80, "cp.async.bulk.tensor: boxes through a tensor map">;
def TmaGather4 : SMFeature<16, "tma_gather4", 86, "tensor copies that gather four rows">;
let IsAboutSpeed = 1 in
def TmaMulticast : SMFeature<17, "tma_multicast", 80, "tensor copies to several CTAs of a cluster at full speed">;
def Wgmma : SMFeature<18, "wgmma", 80, "wgmma.mma_async of a warpgroup">;
def Tcgen05 : SMFeature<19, "tcgen05", 86, "tcgen05 and tensor memory">;
def Tcgen05BlockScale : SMFeature<20, "tcgen05_block_scale", 88, "tcgen05.mma with a scale per block, .blockN spelling">;
def Clusters : SMFeature<21, "clusters", 78, "clusters of CTAs and their shared memory">;
def Setmaxnreg : SMFeature<22, "setmaxnreg", 80, "setmaxnreg: registers move between warpgroups">;
def Mbarrier : SMFeature<23, "mbarrier", 70, "mbarrier objects">;
def MbarrierTx : SMFeature<24, "mbarrier_tx", 80, "mbarrier transaction counts and try_wait">;
def Elect : SMFeature<25, "elect", 80, "elect.sync">;
def Griddepcontrol : SMFeature<26, "griddepcontrol", 78, "griddepcontrol: programmatic dependent launch">;
def Redux : SMFeature<27, "redux", 70, "redux.sync of integers">;
def ReduxF32 : SMFeature<28, "redux_f32", 86, "redux.sync of f32 minimum and maximum">;
def CvtBF16x2 : SMFeature<29, "cvt_bf16x2", 70, "two f32 to bf16x2 in one instruction">;
def CvtFP8 : SMFeature<30, "cvt_fp8", 81, "conversions of e4m3x2 and e5m2x2">;
def CvtFP4 : SMFeature<31, "cvt_fp4", 86, "conversions of e2m1x2 and FP6">;
def FmaBF16x2 : SMFeature<32, "fma_bf16x2", 70, "fma of bf16x2">;
def Ex2F16x2 : SMFeature<33, "ex2_f16x2", 70, "ex2.approx of f16x2">;
def Ex2BF16x2 : SMFeature<34, "ex2_bf16x2", 78, "ex2.approx of bf16x2">;
def TanhF16x2 : SMFeature<35, "tanh_f16x2", 70, "tanh.approx of f16x2 (f32: on every target)">;
def MaxNaN : SMFeature<36, "max_nan", 70, "max.NaN.f32">;
def Max3 : SMFeature<37, "max3", 88, "max of three f32">;
def F32x2 : SMFeature<38, "f32x2", 86, "add, mul and fma of two f32 at once">;
def Global256 : SMFeature<39, "global_256", 88, "global loads and stores of 256 bits">;
def RedBF16x2 : SMFeature<40, "red_bf16x2", 78, "red.add of bf16x2 in global memory">;
def RedV4F32 : SMFeature<41, "red_v4_f32", 81, "red.add of four f32 in global memory">;
// Where an instruction is not one of the machine, ptxas makes others of it.
let IsAboutSpeed = 1 in {
  def FastMmaFP8 : SMFeature<42, "fast_mma_fp8", 84, "mma.sync of e4m3 and e5m2 in half of the time of f16's">;
  def FastF32x2 : SMFeature<43, "fast_f32x2", 86, "add, mul and fma of two f32 in the time of one">;
}

// What each generation adds.
defvar TuringFeatures = [MmaF16, Ldmatrix, Movmatrix, L2Prefetch, Ex2F16x2, TanhF16x2];
defvar AmpereFeatures = !listconcat(TuringFeatures, [
  MmaF16K16, MmaBF16, MmaTF32, MmaInt8, CpAsync, Mbarrier, Redux, CvtBF16x2,
  FmaBF16x2, MaxNaN]);
defvar AdaFeatures = !listconcat(AmpereFeatures, [MmaFP8, CvtFP8]);
defvar HopperFeatures = !listconcat(AdaFeatures, [
  Stmatrix, BulkCopy, Tma, Clusters, Setmaxnreg, MbarrierTx, Elect,
  Griddepcontrol, Ex2BF16x2, RedBF16x2, RedV4F32]);
defvar BlackwellFeatures = !listconcat(HopperFeatures, [
  LdmatrixB8, TmaGather4, CvtFP4, Max3, F32x2, Global256]);
defvar TensorMemoryFeatures = !listconcat(BlackwellFeatures, [
  TmaMulticast, Tcgen05, Tcgen05BlockScale, FastF32x2]);
defvar WarpMmaFeatures = !listconcat(BlackwellFeatures, [
  MmaF8F6F4, MmaBlockScale, FastMmaFP8]);

/// A target. `kib` of shared memory: of an SM, and reserved by the system for
/// each CTA; a CTA may have the rest (by opt-in).
class SMTarget<int major, int minor, string suffix, int ptx, string generation,
               int warps, int ctas, int sharedKiB, int reservedKiB,
               list<SMFeature> features> {
  string Name = "sm_" # major # minor # suffix;
  /// LLVM's and ptxas' name.
  string Chip = Name;
  string Generation = generation;
  bits<8> Major = major;
  bits<8> Minor = minor;
  /// Code for the chip runs on no other (`a` in its name).
  bit IsExact = !ne(suffix, "");
  /// The version of the PTX ISA that is emitted unless a feature needs more,
  /// times ten: the lowest that has the chip and what all kernels use.
  bits<8> PTX = ptx;
  bits<16> MaxWarpsPerSM = warps;
  bits<16> MaxCTAsPerSM = ctas;
  bits<16> MaxThreadsPerCTA = 1024;
  bits<32> RegistersPerSM = 65536;
  bits<16> MaxRegistersPerThread = 255;
  bits<32> SharedPerSM = !mul(sharedKiB, 1024);
  bits<32> SharedReservedPerCTA = !mul(reservedKiB, 1024);
  bits<32> MaxSharedPerCTA = !mul(!sub(sharedKiB, reservedKiB), 1024);
  /// Columns of tensor memory.
  bits<16> TensorMemoryColumns = 0;
  /// CTAs of a cluster that every device of the kind can hold.
  bits<8> MaxClusterSize = 1;
  /// A usual device of the kind, for choices that are made without one.
  string Device = "";
  bits<16> HintSMs = 0;
  bits<32> HintL2KiB = 0;
  list<SMFeature> Features = features;
  bits<64> FeatureMask = !foldl(0, features, mask, feature,
                                !or(mask, !shl(1, feature.Index)));
}

let Device = "T4", HintSMs = 40, HintL2KiB = 4096 in
def SM75 : SMTarget<7, 5, "", 74, "Turing", 32, 16, 64, 0, TuringFeatures>;

let Device = "A100", HintSMs = 108, HintL2KiB = 40960 in
def SM80 : SMTarget<8, 0, "", 74, "Ampere", 64, 32, 164, 1, AmpereFeatures>;
let Device = "A10", HintSMs = 72, HintL2KiB = 6144 in
def SM86 : SMTarget<8, 6, "", 74, "Ampere", 48, 16, 100, 1, AmpereFeatures>;
let Device = "Orin", HintSMs = 16, HintL2KiB = 4096 in
def SM87 : SMTarget<8, 7, "", 74, "Ampere", 48, 16, 164, 1, AmpereFeatures>;
let Device = "L40S", HintSMs = 142, HintL2KiB = 98304 in
def SM89 : SMTarget<8, 9, "", 78, "Ada", 48, 24, 100, 1,
                    !listconcat(AdaFeatures, [FastMmaFP8])>;

let Device = "H100", HintSMs = 132, HintL2KiB = 51200, MaxClusterSize = 8 in
def SM90a : SMTarget<9, 0, "a", 80, "Hopper", 64, 32, 228, 1,
                     !listconcat(HopperFeatures, [TmaMulticast, Wgmma])>;

let TensorMemoryColumns = 512, MaxClusterSize = 8 in {
  let Device = "B200", HintSMs = 148, HintL2KiB = 129024 in
  def SM100a : SMTarget<10, 0, "a", 86, "Blackwell", 64, 32, 228, 1,
                        !listconcat(TensorMemoryFeatures, [ReduxF32])>;
  let Device = "B300", HintSMs = 148, HintL2KiB = 129024 in
  def SM103a : SMTarget<10, 3, "a", 88, "Blackwell", 64, 32, 228, 1,
                        !listconcat(TensorMemoryFeatures, [ReduxF32])>;
  let Device = "Thor", HintSMs = 20, HintL2KiB = 32768 in
  def SM110a : SMTarget<11, 0, "a", 90, "Blackwell", 48, 24, 228, 1,
                        TensorMemoryFeatures>;
}

// Clusters exist here, but tensor copies to several CTAs are slow.
let MaxClusterSize = 8 in {
  let Device = "RTX PRO 6000", HintSMs = 188, HintL2KiB = 131072 in
  def SM120a : SMTarget<12, 0, "a", 87, "Blackwell", 48, 24, 100, 1,
                        WarpMmaFeatures>;
  let Device = "GB10", HintSMs = 48, HintL2KiB = 24576 in
  def SM121a : SMTarget<12, 1, "a", 88, "Blackwell", 48, 24, 100, 1,
                        WarpMmaFeatures>;
}

//===----------------------------------------------------------------------===//
// Versions of the PTX ISA
//===----------------------------------------------------------------------===//

/// `Driver` is the oldest CUDA version whose driver reads it, as the driver
/// tells its own: 1000 * major + 10 * minor.
class PTXVersion<int version, int driver> {
  bits<8> Version = version;
  bits<16> Driver = driver;
}

def : PTXVersion<65, 10020>;
def : PTXVersion<70, 11000>;
def : PTXVersion<71, 11010>;
def : PTXVersion<74, 11040>;
def : PTXVersion<78, 11080>;
def : PTXVersion<80, 12000>;
def : PTXVersion<81, 12010>;
def : PTXVersion<83, 12030>;
def : PTXVersion<84, 12040>;
def : PTXVersion<86, 12070>;
def : PTXVersion<87, 12080>;
def : PTXVersion<88, 12090>;
def : PTXVersion<90, 13000>;

//===----------------------------------------------------------------------===//
// What C++ sees
//===----------------------------------------------------------------------===//

def Feature : GenericEnum {
  let FilterClass = "SMFeature";
  let NameField = "Enumerator";
  let ValueField = "Index";
}

def SMFeatureTable : GenericTable {
  let FilterClass = "SMFeature";
  let CppTypeName = "FeatureEntry";
  let Fields = ["Index", "Spelling", "PTX", "Summary"];
  let PrimaryKey = ["Index"];
  let PrimaryKeyName = "lookupFeature";
}

def SMTargetTable : GenericTable {
  let FilterClass = "SMTarget";
  let CppTypeName = "Target";
  let Fields = ["Major", "Minor", "Name", "Chip", "Generation", "IsExact", "PTX",
                "MaxWarpsPerSM", "MaxCTAsPerSM", "MaxThreadsPerCTA",
                "RegistersPerSM", "MaxRegistersPerThread", "SharedPerSM",
                "SharedReservedPerCTA", "MaxSharedPerCTA",
                "TensorMemoryColumns", "MaxClusterSize", "Device", "HintSMs",
                "HintL2KiB", "FeatureMask"];
  let PrimaryKey = ["Major", "Minor"];
  let PrimaryKeyName = "lookupCapability";
}

def PTXVersionTable : GenericTable {
  let FilterClass = "PTXVersion";
  let CppTypeName = "PTXVersion";
  let Fields = ["Version", "Driver"];
  let PrimaryKey = ["Version"];
  let PrimaryKeyName = "lookupPTXVersion";
}

#endif // FI_TARGET_SMTABLE_TD
