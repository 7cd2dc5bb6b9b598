#!/usr/bin/env python3
# ===- check_features.py - the SM table against ptxas ----------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------===#
"""Compares the features of SMTable.td with what ptxas assembles.

usage: check_features.py <SMTable.json> <ptxas> [<target>|--probe]

For each feature there is PTX that needs it. A target that has the feature must
assemble it at the PTX version that the table gives, and one that does not must
refuse it at any version. --probe prints what ptxas says, and checks nothing.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

VERSIONS = [63, 65, 70, 71, 74, 78, 80, 81, 83, 84, 86, 87, 88, 90]

MMA = "mma.sync.aligned.{shape}.row.col.{kind}{d}.{a}.{b}.{c}{s}"


def mma(shape, d, a, b, c, regs_d, regs_a, regs_b, kind="", scale="", extra=""):
    def group(prefix, count):
        return "{" + ", ".join(f"{prefix}{i}" for i in range(count)) + "}"
    p = "%f" if d == "f32" else "%r"
    text = MMA.format(shape=shape, kind=kind, d=d, a=a, b=b, c=c, s=scale)
    return (f"{text} {group(p, regs_d)}, {group('%r', regs_a)}, {group('%r', regs_b)}, "
            f"{group(p, regs_d)}{extra};")


# The registers that the snippets use hold whatever comes: nothing is executed.
SNIPPETS = {
    "mma_f16": mma("m16n8k8", "f32", "f16", "f16", "f32", 4, 2, 1),
    "mma_f16_k16": mma("m16n8k16", "f32", "f16", "f16", "f32", 4, 4, 2),
    "mma_bf16": mma("m16n8k16", "f32", "bf16", "bf16", "f32", 4, 4, 2),
    "mma_tf32": mma("m16n8k8", "f32", "tf32", "tf32", "f32", 4, 4, 2),
    "mma_int8": mma("m16n8k32", "s32", "s8", "s8", "s32", 4, 4, 2),
    "mma_fp8": mma("m16n8k32", "f32", "e4m3", "e4m3", "f32", 4, 4, 2),
    "mma_f8f6f4": mma("m16n8k32", "f32", "e4m3", "e2m1", "f32", 4, 4, 2, kind="kind::f8f6f4."),
    "mma_block_scale": mma("m16n8k64", "f32", "e2m1", "e2m1", "f32", 4, 4, 2,
                           kind="kind::mxf4nvf4.block_scale.scale_vec::4X.", scale=".ue4m3",
                           extra=", %r0, {0, 0}, %r1, {0, 0}"),
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%rd0];",
    "ldmatrix_b8": "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%r0, %r1, %r2, %r3}, [%rd0];",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%rd0], {%r0, %r1, %r2, %r3};",
    "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;",
    "cp_async": "cp.async.cg.shared.global [%rd0], [%rd1], 16, %r0;",
    "l2_prefetch": "ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%r0, %r1, %r2, %r3}, [%rd1];",
    "bulk_copy": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd0], [%rd1], %r0, [%rd2];",
    "tma": "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
           "[%rd0], [%rd1, {%r0, %r1}], [%rd2];",
    "tma_gather4": "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
                   "[%rd0], [%rd1, {%r0, %r1, %r2, %r3, %r4}], [%rd2];",
    "wgmma": "wgmma.fence.sync.aligned;",
    "tcgen05": "tcgen05.fence::before_thread_sync;",
    "tcgen05_block_scale": "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 "
                           "[%r0], %rd0, %rd1, %r1, [%r2], [%r3], %p0;",
    "clusters": "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    "setmaxnreg": "setmaxnreg.inc.sync.aligned.u32 240;",
    "mbarrier": "mbarrier.init.shared.b64 [%rd0], %r0;",
    "mbarrier_tx": "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%rd0], %r0;",
    "elect": "elect.sync %r0|%p0, -1;",
    "griddepcontrol": "griddepcontrol.wait;",
    "redux": "redux.sync.add.s32 %r0, %r1, -1;",
    "redux_f32": "redux.sync.max.f32 %f0, %f1, -1;",
    "cvt_bf16x2": "cvt.rn.bf16x2.f32 %r0, %f0, %f1;",
    "cvt_fp8": "cvt.rn.f16x2.e4m3x2 %r0, %h0;",
    "cvt_fp4": "{ .reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %f0, %f1; }",
    "fma_bf16x2": "fma.rn.bf16x2 %r0, %r1, %r2, %r3;",
    "ex2_f16x2": "ex2.approx.f16x2 %r0, %r1;",
    "ex2_bf16x2": "ex2.approx.ftz.bf16x2 %r0, %r1;",
    "tanh_f16x2": "tanh.approx.f16x2 %r0, %r1;",
    "max_nan": "max.NaN.f32 %f0, %f1, %f2;",
    "max3": "max.f32 %f0, %f1, %f2, %f3;",
    "f32x2": "fma.rn.f32x2 %rd0, %rd1, %rd2, %rd3;",
    "global_256": "ld.global.v8.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%rd1];",
    "red_bf16x2": "red.relaxed.gpu.global.add.noftz.bf16x2 [%rd0], %r0;",
    "red_v4_f32": "red.relaxed.gpu.global.add.v4.f32 [%rd0], {%f0, %f1, %f2, %f3};",
}

PTX = """.version {major}.{minor}
.target {chip}
.address_size 64
.visible .entry probe() {{
  .reg .b16 %h<8>;
  .reg .b32 %r<16>;
  .reg .f32 %f<16>;
  .reg .b64 %rd<8>;
  .reg .pred %p<4>;
  {body}
  ret;
}}
"""


def assembles(ptxas, directory, chip, version, feature):
    path = os.path.join(directory, f"{chip}-{version}-{feature}.ptx")
    with open(path, "w") as file:
        file.write(PTX.format(major=version // 10, minor=version % 10, chip=chip, body=SNIPPETS[feature]))
    done = subprocess.run([ptxas, "-arch", chip, path, "-o", path + ".cubin"], capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def number(bits):
    """TableGen dumps `bits` as a list, the lowest first."""
    return bits if isinstance(bits, int) else sum(bit << i for i, bit in enumerate(bits))


def read_table(path):
    with open(path) as file:
        records = json.load(file)
    features = {}
    for name in records["!instanceof"]["SMFeature"]:
        if not records[name]["IsAboutSpeed"]:
            features[records[name]["Spelling"]] = number(records[name]["PTX"])
    targets = {}
    for name in records["!instanceof"]["SMTarget"]:
        record = records[name]
        targets[record["Name"]] = (number(record["PTX"]), {
            records[feature["def"]]["Spelling"] for feature in record["Features"]})
    return features, targets


def probe(chips, ptxas):
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for feature in SNIPPETS:
            def first(chip):
                good, _ = assembles(ptxas, directory, chip, VERSIONS[-1], feature)
                if not good:
                    return "no"
                for version in VERSIONS:
                    if assembles(ptxas, directory, chip, version, feature)[0]:
                        return version
            print(feature, dict(zip(chips, pool.map(first, chips))), flush=True)


def main():
    features, targets = read_table(sys.argv[1])
    ptxas = sys.argv[2]
    if "--probe" in sys.argv:
        return probe(list(targets), ptxas)
    findings = []
    if set(features) != set(SNIPPETS):
        findings.append(f"features without PTX here, or the reverse: {sorted(set(features) ^ set(SNIPPETS))}")
    chosen = sys.argv[3:] or targets
    jobs = [(target, feature) for target in chosen for feature in features if feature in SNIPPETS]
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(2) as pool:
        def check(job):
            target, feature = job
            base, has = targets[target]
            if feature not in has:
                good, _ = assembles(ptxas, directory, target, VERSIONS[-1], feature)
                return f"{target} lacks {feature} in the table, but ptxas assembles it" if good else None
            version = max(base, features[feature])
            good, text = assembles(ptxas, directory, target, version, feature)
            return None if good else f"{target} has {feature} in the table, but at PTX {version} ptxas says: {text}"
        findings += [finding for finding in pool.map(check, jobs) if finding]
    for finding in findings:
        print(finding)
    print(f"{len(jobs)} pairs of target and feature, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
