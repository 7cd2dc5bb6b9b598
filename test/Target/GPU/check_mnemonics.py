#===- check_mnemonics.py - instructions of programs by target ---------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
#
# check_mnemonics.py COMMAND [TABLE] [--targets PAGE] [--program NAME]
#
#   check     compares the instructions that programs have on each target, as far as
#             targets differ in them, and the reasons that the compiler gives for
#             features that it does not use, with a table; looks for instructions of
#             features that docs/targets.md, or PAGE, does not give the target; and
#             whether the compiler says of each feature of a target that a kernel uses
#             it, as its instructions tell here, or why not
#   refresh   writes the table
#
# Tools are found by PATH. A program of each family of kernels is compiled for all
# targets, or NAME alone.
#
#===------------------------------------------------------------------------===#
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "Inputs", "mnemonics.json")
TARGETS = os.path.join(HERE, "..", "..", "..", "docs", "targets.md")

# Opcodes by the feature that they belong to.
FEATURES = {
    "mma_f16": r"mma\.sync.*m16n8k8.*\.f16\.f16",
    "mma_f16_k16": r"mma\.sync.*m16n8k16.*\.f16\.f16",
    "mma_bf16": r"mma\.sync.*bf16",
    "mma_tf32": r"mma\.sync.*tf32|cvt\.rna\.tf32",
    "mma_int8": r"mma\.sync.*\.s8",
    "mma_fp8": r"mma\.sync.*e(4m3|5m2)",
    "fast_mma_fp8": r"mma\.sync.*e(4m3|5m2)",
    "mma_f8f6f4": r"mma\.sync.*f8f6f4",
    "mma_block_scale": r"mma\.sync.*block_scale",
    "ldmatrix": r"ldmatrix.*\.b16",
    "ldmatrix_b8": r"ldmatrix.*\.b8",
    "stmatrix": r"stmatrix",
    "movmatrix": r"movmatrix",
    "cp_async": r"cp\.async\.(ca|cg|commit_group|wait_)",
    "l2_prefetch": r"L2::(64|128|256)B",
    "bulk_copy": r"cp\.async\.bulk\.(?!tensor)",
    "tma": r"cp\.async\.bulk\.tensor",
    "tma_gather4": r"cp\.async\.bulk\.tensor.*gather4",
    "tma_multicast": r"cp\.async\.bulk\.tensor.*multicast",
    "wgmma": r"wgmma",
    "tcgen05": r"tcgen05",
    "tcgen05_block_scale": r"tcgen05\.mma.*block_scale",
    "clusters": r"barrier\.cluster|mapa",
    "setmaxnreg": r"setmaxnreg",
    "mbarrier": r"mbarrier",
    "mbarrier_tx": r"mbarrier\..*(expect_tx|try_wait)",
    "elect": r"elect\.sync",
    "griddepcontrol": r"griddepcontrol",
    "redux": r"redux\.sync",
    "redux_f32": r"redux\.sync.*f32",
    "cvt_bf16x2": r"cvt\..*bf16x2\.f32",
    "cvt_fp8": r"cvt\..*e(4m3|5m2)x2",
    "cvt_fp4": r"cvt\..*e2m1x2",
    "fma_bf16x2": r"fma\..*bf16x2",
    "ex2_f16x2": r"ex2\..*\.f16x2",
    "tanh_f16x2": r"tanh\..*\.f16x2",
    "ex2_bf16x2": r"ex2\..*bf16x2",
    "max_nan": r"max\.NaN\.f32",
    "f32x2": r"(add|mul|fma)\..*f32x2",
    "fast_f32x2": r"(add|mul|fma)\..*f32x2",
    "global_256": r"(ld|st)\.global.*\.v8\.b32|(ld|st)\.global.*\.v4\.b64",
    "red_bf16x2": r"red\..*bf16x2",
    "red_v4_f32": r"red\..*v4\.f32",
}
# Not told by opcodes: max.f32 may have three operands.
UNTOLD = {"max3"}
# What all targets have, but not all use.
OTHERS = r"mma\.sync|ldmatrix|mul\.f16x2|cvt\..*f16x2|ex2\.|shfl\.sync\.idx"


def attention(query, storage=None):
    element = storage or query
    if element == "nvfp4":
        pool, scheme = "memref<?x16x2x32xi8>", "!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>"
        arguments = ", %kb: !sc, %ks: f32, %vb: !sc, %vs: f32"
        scales = "scales(%kb, %ks, %vb, %vs : !sc, f32, !sc, f32) "
    elif element == query:
        pool, scheme, arguments, scales = f"memref<?x16x2x64x{query}>", query, "", ""
    else:
        pool, scheme = f"memref<?x16x2x64x{element}>", f"!fi.scaled<{element}, per = tensor, by = f32>"
        arguments, scales = ", %ks: f32, %vs: f32", "scales(%ks, %vs : f32, f32) "
    return f"""
!ix = tensor<?xi32>
!pool = {pool}
!sc = tensor<?x16x2x4xf8E4M3FN>
!kv = !fi.paged_kv<16x2x64x{scheme}, NHD>
!q = tensor<?x8x64x{query}>
fi.program @attention plan(%qi: !ix, %ki: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %v: !pool{arguments}) -> (!q) {{
  %kv = fi.view.paged %k, %v tables(%ki, %pages, %last : !ix, !ix, !ix) {scales}: !pool, !pool -> !kv
  %o = fi.attention %q rows(%qi : !ix) over %kv scale(0.125) mask(#fi.causal) : !q over !kv -> !q
  fi.return %o : !q
}}
"""


def attention_fp8():
    """Queries and keys of FP8."""
    text = attention("bf16", "f8E4M3FN").replace("!q = tensor<?x8x64xbf16>",
                                                 "!q = tensor<?x8x64xf8E4M3FN>\n!o = tensor<?x8x64xbf16>")
    return text.replace("-> (!q)", "-> (!o)").replace("-> !q", "-> !o").replace("%o : !q", "%o : !o")


def of_rows(op, element, inputs, result):
    """One op on rows of a tensor of its own."""
    arguments = "".join(f", %{name}: {kind}" for name, kind in inputs)
    return f"""
!x = tensor<?x2x128x{element}>
!y = {result}
fi.program @rows run(%x: !x{arguments}) -> (!y) {{
  %y = {op} : !x -> !y
  fi.return %y : !y
}}
"""


def append(scheme, pool, scales):
    arguments = "".join(f", %{name}: {kind}" for name, kind in scales)
    names = ", ".join("%" + name for name, _ in scales)
    kinds = ", ".join(kind for _, kind in scales)
    return f"""
!ix = tensor<?xi32>
!new = tensor<?x2x64xbf16>
!pool = {pool}
!kv = !fi.paged_kv<16x2x64x{scheme}, NHD>
fi.program @append plan(%qo: !ix, %ki: !ix, %pages: !ix, %last: !ix)
    run(%nk: !new, %nv: !new, %k: !pool, %v: !pool{arguments}) {{
  %kv = fi.view.paged %k, %v tables(%ki, %pages, %last : !ix, !ix, !ix) scales({names} : {kinds}) : !pool, !pool -> !kv
  fi.append %nk, %nv rows(%qo : !ix) to %kv : !new, !new to !kv
  fi.return
}}
"""


MERGE = """
!q = tensor<?x2x64xf16>
!kv = !fi.ragged_kv<1x64xf16>
!t = tensor<?x1x64xf16>
!ix = tensor<?xi32>
!seg = !fi.state<?x2x64xf32, #fi.softmax<base = 2>, segmented>
!st = !fi.state<?x2x64xf32, #fi.softmax<base = 2>>
fi.program @merge plan(%qo: !ix, %ip: !ix) run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix) : !t, !t -> !kv
  %g = fi.segments rows(%qo : !ix) over %kv split(#fi.split<fixed = 64>) : !kv
  %p = fi.attention %q rows(%qo : !ix) over %kv segments(%g) scale(0.4) : !q over !kv -> !seg
  %s = fi.merge_segments %p by %g : !seg -> !st
  %o = fi.finalize %s : !st -> !q
  fi.return %o : !q
}
"""
F8 = "!fi.scaled<f8E4M3FN, per = tensor, by = f32>"
NVFP4 = "!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>"
BLOCKS = "memref<?x16x2x4xf8E4M3FN>"

# Prefill, appended rows, verification and decode are bodies of one program.
PROGRAMS = {
    "attention_f16": attention("f16"),
    "attention_bf16": attention("bf16"),
    "attention_f32": attention("f32"),
    "attention_f16_f8E4M3FN": attention("f16", "f8E4M3FN"),
    "attention_bf16_i8": attention("bf16", "i8"),
    "attention_f8E4M3FN": attention_fp8(),
    "attention_f16_nvfp4": attention("f16", "nvfp4"),
    "merge_f16": MERGE,
    "append_bf16_f8E4M3FN": append(F8, "memref<?x16x2x64xf8E4M3FN>", [("ks", "f32"), ("vs", "f32")]),
    "append_bf16_nvfp4": append(NVFP4, "memref<?x16x2x32xi8>",
                                [("kb", BLOCKS), ("ks", "f32"), ("vb", BLOCKS), ("vs", "f32")]),
    "gated_bf16": of_rows("fi.gated %x act(silu)", "bf16", [], "tensor<?x2x64xbf16>"),
    "rms_norm_bf16": of_rows("fi.rms_norm %x weight(%w : tensor<128xbf16>) eps(1.0e-6)", "bf16",
                             [("w", "tensor<128xbf16>")], "!x"),
    "rope_bf16": of_rows("fi.rope %x at(%pos : tensor<?xi32>) pair<half> transform(#fi.rotary<10000.0>)",
                         "bf16", [("pos", "tensor<?xi32>")], "!x"),
    "quantise_bf16_f8E4M3FN": of_rows(f"fi.quantise %x to({F8}) scales(%n : f32)", "bf16", [("n", "f32")],
                                      "tensor<?x2x128xf8E4M3FN>"),
}


def read_features(page):
    """What the page of targets gives each target, and all features in their order."""
    with open(page) as file:
        lines = file.read().split("## Features")[1].splitlines()
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in lines if line.startswith("|")]
    chips = ["sm_" + name for name in rows[0][3:]]
    has = {chip: set() for chip in chips}
    for row in rows[2:]:
        for chip, mark in zip(chips, row[3:]):
            if mark == "x":
                has[chip].add(row[0].strip("`"))
    return has, [row[0].strip("`") for row in rows[2:]]


def opcodes(ptx):
    found = set()
    for line in ptx.splitlines():
        match = re.match(r"\s*(?:@!?%\w+\s+)?(?:\{\s*)?([a-z][a-z0-9_]*(?:[.:]+[A-Za-z0-9_]+)+)(?=[\s;]|$)", line)
        if match:
            found.add(match.group(1))
    return found


def split_kernels(ptx):
    """{kernel: opcodes}."""
    parts = re.split(r"\.entry\s+(\w+)", ptx)
    return {name: opcodes(text) for name, text in zip(parts[1::2], parts[2::2])}


def check_told(target, features, told, kernels):
    """Whether what the compiler tells of each kernel is what its instructions tell."""
    if set(kernels) != {uses["symbol"] for uses in told["uses"]}:
        yield f"{target}: the kernels are {sorted(kernels)}, but those that the compiler tells of are others"
    for uses in told["uses"]:
        name, used = uses["symbol"], set(uses["features"])
        found = {feature for feature in features
                 if feature in FEATURES and any(re.search(FEATURES[feature], o) for o in kernels.get(name, ()))}
        if found != used - UNTOLD:
            yield f"{target}: {name} uses {sorted(found ^ (used - UNTOLD))}, or not, other than the compiler says"
        unused = [feature for group in told["unused"] if name in group["kernels"] for feature in group["features"]]
        if sorted(unused + list(used)) != sorted(features):
            yield f"{target}: {name}: expected each feature once, used or not, but got {sorted(unused + list(used))}"


def compile_one(text):
    """{target: (opcodes of kernels, what the manifest tells of features)}."""
    with tempfile.TemporaryDirectory() as directory:
        source = os.path.join(directory, "p.mlir")
        with open(source, "w") as file:
            file.write(text)
        out = os.path.join(directory, "package")
        made = subprocess.run(["fi-translate", "--fi-to-package", "--target=all", "--no-locations", "--no-cubin",
                               source, "-o", out], capture_output=True, text=True)
        if made.returncode:
            raise SystemExit(f"{made.stderr}\n{text}")
        found = {}
        for name in os.listdir(out):
            if not os.path.isdir(os.path.join(out, name)):
                continue
            with open(os.path.join(out, name, "kernels.ptx")) as file:
                kernels = split_kernels(file.read())
            with open(os.path.join(out, name, "manifest.json")) as file:
                found[name] = kernels, json.load(file)["target"]
        return found


def compile_all(names):
    """{program: {target: (opcodes of kernels, features)}}."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(names, pool.map(lambda name: compile_one(PROGRAMS[name]), names)))


def by_targets(found):
    """{opcode: targets in a row}, which reads best of what has few differences."""
    rows = {}
    for target in found:
        for opcode in found[target]:
            rows.setdefault(opcode, []).append(target)
    order = list(found)
    return {opcode: " ".join(sorted(targets, key=order.index))
            for opcode, targets in sorted(rows.items())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("check", "refresh"))
    parser.add_argument("table", nargs="?", default=TABLE)
    parser.add_argument("--targets", default=TARGETS)
    parser.add_argument("--program", choices=list(PROGRAMS))
    arguments = parser.parse_args()
    names = [arguments.program] if arguments.program else list(PROGRAMS)
    has, known = read_features(arguments.targets)
    problems = [f"docs/targets.md has no feature {feature}" for feature in FEATURES
                if feature not in known]
    wanted = re.compile("|".join([*FEATURES.values(), OTHERS]))
    got = {}
    for program, found in compile_all(names).items():
        if set(found) != set(has):
            problems.append(f"{program}: expected code for all targets")
        all_opcodes, reasons = {}, {False: {}, True: {}}
        for target in has:
            kernels, told = found.get(target, ({}, {"uses": [], "unused": []}))
            all_opcodes[target] = set().union(*kernels.values()) if kernels else set()
            for feature, pattern in FEATURES.items():
                problems += [f"{program}: {opcode} needs {feature}, which {target} does not have"
                             for opcode in sorted(all_opcodes[target])
                             if feature not in has[target] and re.search(pattern, opcode)]
            problems += [f"{program}: {fault}" for fault in check_told(target, has[target], told, kernels)]
            for group in told["unused"]:
                for feature in group["features"]:
                    targets = reasons[group["idle"]].setdefault(f"{feature}: {group['why']}", [])
                    targets += [] if target in targets else [target]
        got[program] = {
            "opcodes": by_targets({target: {opcode for opcode in found if wanted.search(opcode)}
                                   for target, found in all_opcodes.items()}),
            "unused": {why: " ".join(targets) for why, targets in sorted(reasons[False].items())},
            "nothing to do": {why: " ".join(targets) for why, targets in sorted(reasons[True].items())},
        }
    if arguments.command == "refresh":
        with open(arguments.table, "w") as file:
            json.dump(got, file, indent=1)
            file.write("\n")
    else:
        with open(arguments.table) as file:
            expected = json.load(file)
        for program in names:
            for part in got[program]:
                old, new = expected.get(program, {}).get(part, {}), got[program][part]
                for row in sorted(set(old) | set(new)):
                    before, now = old.get(row, "no target"), new.get(row, "no target")
                    if before != now:
                        problems.append(f"{program}: {row} was on {before} and is on {now}")
    for problem in problems:
        print(problem)
    if problems:
        print("FAIL; where a change is meant: check_mnemonics.py refresh")
        return 1
    print(f"PASS: {len(got)} programs on {len(has)} targets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
