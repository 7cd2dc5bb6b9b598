#===- check_resources.py - registers and spills of the standard kernels -----===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
# check_resources.py COMMAND [TABLE] [--all] [--family REGEX]
#
#   check     compares what ptxas says of the standard kernels with the table, and of a
#             program of each family on one target, which take turns; with --all on every
#             target. Each kernel that spills has a reason here.
#   refresh   writes the table; with REGEX, of the families alone that it names
#   estimate  compares what fi-tile-estimate-registers says of a grid of schedules
#             with the fewest registers for which ptxas does not spill before states
#             are merged, which are in a table of their own: that needs no ptxas
#   grid      finds those again, by assembling each kernel with fewer and fewer
#             (minutes), and writes their table
#
# The standard kernels are the bodies that fi chooses for causal attention of 32
# heads over 8 KV heads in pages of 16 keys; those of families are of the programs of
# check_mnemonics.py and of a few that need more registers. Tools are found by PATH;
# without ptxas the check is left out, and says so. A version of ptxas other than the
# table's may give other registers, within a tolerance.
#
#===--------------------------------------------------------------------------===#
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import check_mnemonics

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "Inputs", "resources.json")
FEWEST = os.path.join(HERE, "Inputs", "fewest-registers.json")
CHIPS = ("sm_80", "sm_90a")
TYPES = ("f16", "bf16")
DIMS = (64, 128, 256)
# Registers, and bytes of spills: another ptxas, or a change that is not about them. A
# kernel that spills nothing may not begin to.
TOLERANCE = {"registers": 8, "spills": 64, "stack": 32}
# Of estimates: code may have the loads of a stream (16) and a block of fragments (8)
# more or fewer under way, and keep pointers to matrices (2 x 8) or make them anew.
ESTIMATE_ERROR = 40
MOST_REGISTERS = 255
# tile_rows, tile_keys, warps, key_warps, stages
GRID = ((16, 16, 1, 1, 3), (16, 32, 1, 1, 2), (32, 32, 1, 1, 2), (64, 32, 4, 1, 2),
        (64, 64, 4, 1, 2), (128, 64, 4, 1, 2), (128, 32, 4, 1, 2), (128, 32, 8, 1, 2),
        (96, 48, 3, 1, 1))
GRID_DIMS = (64, 128)


def program(element, dim, chip, schedules=None, heads=32, kv_heads=8, page=16):
    chosen = f" schedules([{', '.join(schedules)}])" if schedules else ""
    return f"""
!ix = tensor<?xi32>
!pool = memref<?x{page}x{kv_heads}x{dim}x{element}>
!kv = !fi.paged_kv<{page}x{kv_heads}x{dim}x{element}, NHD>
!q = tensor<?x{heads}x{dim}x{element}>
!lse = tensor<?x{heads}xf32>
module attributes {{fi.target = #fi.target<{chip}>}} {{
fi.program @attention plan(%qi: !ix, %ki: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %v: !pool) -> (!q, !lse) {{
  %kv = fi.view.paged %k, %v tables(%ki, %pages, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  %o, %lse = fi.attention %q rows(%qi : !ix) over %kv scale(0.125) mask(#fi.causal){chosen} : !q over !kv -> !q, !lse
  fi.return %o, %lse : !q, !lse
}}
}}
"""


LATENT = """
!ix = tensor<?xi32>
!c = memref<?x16x512xbf16>
!t = memref<?x16x64xbf16>
!kv = !fi.latent_kv<512+64xbf16, page = 16>
!q = tensor<?x16x512xbf16>
!r = tensor<?x16x64xbf16>
fi.program @latent plan(%qi: !ix, %ki: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %r: !r, %c: !c, %t: !t) -> (!q) {
  %kv = fi.view.latent %c, %t tables(%ki, %pages, %last : !ix, !ix, !ix) : !c, !t -> !kv
  %o = fi.attention %q, %r rows(%qi : !ix) over %kv scale(0.0417) mask(#fi.causal) : !q, !r over !kv -> !q
  fi.return %o : !q
}
"""


def without_target(text):
    return re.sub(r"module attributes [^\n]*\{\n", "", text).rstrip().removesuffix("}")


FAMILIES = dict(check_mnemonics.PROGRAMS)
FAMILIES["wide_heads_bf16"] = without_target(program("bf16", 256, "sm_80"))
FAMILIES["latent_bf16"] = LATENT
# Fused operations in the place of products, for which ptxas takes long.
SLOW = {("sm_75", name) for name in ("attention_bf16", "attention_f32", "attention_bf16_i8", "wide_heads_bf16",
                                     "latent_bf16")}

# Why kernels spill, by their names in the table.
SPILLS = {
    r"nvfp4 .*_rows128$|bf16_i8 .*_rows128$|^sm_80 b?f16 128 .*_rows128$":
        "32 rows a warp share each fragment of keys, which is worth some spills (kSpilledRegisters)",
    r"^sm_90a .*_rows(192|128)$":
        "warpgroups have what setmaxnreg leaves, 160 or 240 registers a lane (docs/design/2026-11-30-hopper-passes.md)",
    r" latent_bf16 ":
        "an output of 512 columns takes 256 registers of a lane in fragments of 16 rows, whatever the tile: one of 64 "
        "keys spills 139 bytes a key, of 32 keys 199, of 16 keys 331",
    r" rope_bf16 ": "angles are exact to the largest position: 242 registers without spills, two CTAs on a multiprocessor",
    r" rms_norm_bf16 ": "64 registers, so that half of the threads of a multiprocessor have loads under way",
}


def get_spill_reason(name):
    return next((why for pattern, why in SPILLS.items() if re.search(pattern, name)), None)


def find_ptxas():
    """As the compiler finds it."""
    if "FI_PTXAS" in os.environ:
        return os.environ["FI_PTXAS"]
    at = "/usr/local/cuda/bin/ptxas"
    return shutil.which("ptxas") or (at if os.path.exists(at) else "")


def choose_families(wants_all, pattern=""):
    """Pairs of target and family: of each family one target, without --all."""
    chips = list(check_mnemonics.read_features(check_mnemonics.TARGETS)[0])
    pairs = []
    for i, name in enumerate(FAMILIES):
        turn = chips[(2 * i + 1) % len(chips)]
        pairs += [(chip, name) for chip in chips if re.search(pattern, name) and
                  (wants_all or (chip == turn and (chip, name) not in SLOW))]
    return pairs


def manifest_kernels(manifest):
    """Launches by symbol."""
    launches = {}

    def visit(node):
        if isinstance(node, dict):
            if "symbol" in node and "launch" in node:
                launches[node["symbol"]] = node["launch"]
            for child in node.values():
                visit(child)
        elif isinstance(node, list):
            for child in node:
                visit(child)

    visit(manifest)
    return launches


def compile_kernels(text, chip=None):
    """What ptxas says of each kernel of a program, and its warnings."""
    with tempfile.TemporaryDirectory() as directory:
        source = os.path.join(directory, "p.mlir")
        package = os.path.join(directory, "p.fipkg")
        with open(source, "w") as file:
            file.write(text)
        target = [f"--target={chip}"] if chip else []
        made = subprocess.run(["fi-translate", "--fi-to-package", *target, source, "-o", package],
                              capture_output=True, text=True)
        if made.returncode:
            raise SystemExit(f"fi-translate: {made.stderr}\n{text}")
        with open(os.path.join(package, "manifest.json")) as file:
            manifest = json.load(file)
    cubin = manifest["target"]["cubin"]
    launches = manifest_kernels(manifest)
    kernels = {}
    for kernel in cubin["kernels"]:
        launch = launches[kernel["symbol"]]
        kernels[kernel["symbol"]] = {
            "registers": kernel["registers"],
            "spills": kernel["spill_stores"] + kernel["spill_loads"],
            "stack": kernel["stack"],
            "shared": kernel["static_shared"] + launch["shared"],
            "threads": launch["threads"],
        }
    return kernels, cubin.get("warnings", []), cubin["ptxas"]


def in_parallel(function, cases):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, cases))


def measure(families, wants_standard=True):
    """The standard kernels, and those of families on targets."""
    cases = [(f"{chip} {element} {dim}", program(element, dim, chip), None)
             for chip in CHIPS for element in TYPES for dim in DIMS if wants_standard]
    cases += [(f"{chip} {name}", FAMILIES[name], chip) for chip, name in families]
    results = in_parallel(lambda case: compile_kernels(*case[1:]), cases)
    table, warnings = {}, []
    for (name, _, _), (kernels, warned, version) in zip(cases, results):
        for symbol, uses in kernels.items():
            table[f"{name} {symbol}"] = uses
        warnings += [f"{name}: {text}" for text in warned]
    return {"ptxas": version, "kernels": table}, warnings


def print_table(table, path):
    with open(path, "w") as file:
        file.write('{\n  "ptxas": %s,\n  "kernels": {\n' % json.dumps(table["ptxas"]))
        rows = [f"    {json.dumps(name)}: {json.dumps(uses)}" for name, uses in table["kernels"].items()]
        file.write(",\n".join(rows) + "\n  }\n}\n")


def read_table(path):
    with open(path) as file:
        return json.load(file)


def check(path, wants_all, pattern):
    if not find_ptxas():
        print("SKIP: ptxas is not there (FI_PTXAS, PATH, /usr/local/cuda), so nothing says what kernels use")
        return 0
    golden = read_table(path)
    # Families that nobody has measured yet: minutes of ptxas on some targets.
    known = {name.split()[1] for name in golden["kernels"] if len(name.split()) == 3}
    families = [pair for pair in choose_families(wants_all, pattern) if pair[1] in known]
    table, warnings = measure(families)
    chosen = {f"{chip} {name}" for chip, name in families}
    faults = [f"ptxas warns: {text}" for text in warnings]
    for name in sorted(golden["kernels"].keys() | table["kernels"].keys()):
        before, now = golden["kernels"].get(name), table["kernels"].get(name)
        if not now and len(name.split()) == 3 and name.rsplit(" ", 1)[0] not in chosen:
            continue
        if not before or not now:
            faults.append(f"{name}: {'gone' if before else 'not in the table'}")
            continue
        if now["spills"] and not get_spill_reason(name):
            faults.append(f"{name}: spills {now['spills']} bytes; change its schedule, or say why in SPILLS")
        for what, value in now.items():
            allowed = TOLERANCE.get(what, 0) if before[what] else 0
            if what == "spills":
                allowed = max(allowed, before[what] // 8)
            if abs(value - before[what]) > allowed:
                faults.append(f"{name}: {what}: {value}, but {before[what]} in the table")
    for fault in faults:
        print(fault)
    if faults:
        print(f"FAIL: ptxas {table['ptxas']}, the table is of {golden['ptxas']}; where this is meant:\n"
              f"  {os.path.basename(__file__)} refresh")
        return 1
    print(f"PASS: {len(table['kernels'])} kernels, {len(chosen)} programs of families on "
          f"{len({chip for chip, _ in families})} targets; not in the table: "
          f"{', '.join(sorted(set(FAMILIES) - known)) or 'none'}")
    return 0


def refresh(path, pattern):
    """Family by family, since they take minutes; the standard kernels first."""
    table, status = read_table(path), 0
    names = [name for name in FAMILIES if re.search(pattern, name)]
    for name in ([] if pattern else [None]) + names:
        families = choose_families(True, f"^{name}$") if name else []
        made, warnings = measure(families, wants_standard=not name)
        kept = {row: uses for row, uses in table["kernels"].items()
                if (row.split()[1] != name if name else len(row.split()) == 3)}
        table = {"ptxas": made["ptxas"], "kernels": {**kept, **made["kernels"]}}
        print_table(table, path)
        for text in warnings:
            print(f"ptxas warns: {text}")
            status = 1
        for row, uses in made["kernels"].items():
            if uses["spills"] and not get_spill_reason(row):
                print(f"{row}: spills {uses['spills']} bytes, without a reason in SPILLS", flush=True)
    return status


def grid_cases():
    for dim in GRID_DIMS:
        for rows, keys, warps, key_warps, stages in GRID:
            name = f"{dim} {rows}x{keys} warps {warps} key_warps {key_warps} stages {stages}"
            schedule = (f"#fi.schedule<tile_rows = {rows}, tile_keys = {keys}, warps = {warps}, "
                        f"key_warps = {key_warps}, stages = {stages}, lanes = 4>")
            yield name, program("f16", dim, "sm_80", [schedule])


def find_fewest(case):
    """The fewest registers for which ptxas does not spill: what it has, and what it spills."""
    name, text = case
    with tempfile.TemporaryDirectory() as directory:
        source, ptx, cubin = (os.path.join(directory, n) for n in ("p.mlir", "p.ptx", "p.cubin"))
        # Without merging pieces of split keys: its loads are spread as registers
        # allow, outside of the loops over keys.
        placed = re.sub(r"= fi_tile.arrive_last [^\n]*", "= arith.constant false", place(text))
        lowered = subprocess.run(["fi-opt", "-", "--fi-lower-to-nvvm"], input=placed,
                                 capture_output=True, text=True, check=True).stdout
        with open(source, "w") as file:
            file.write(lowered)
        subprocess.run(["fi-translate", "--fi-to-ptx", "--no-locations", source, "-o", ptx], check=True)
        with open(ptx) as file:
            code = file.read()
        # Bounds of a launch go before the option.
        with open(ptx, "w") as file:
            file.write(re.sub(r"\.(minnctapersm|reqntid|maxntid)[^\n]*", "", code))

        def spilled(registers):
            made = subprocess.run([os.environ.get("FI_PTXAS", "ptxas"), "-v", "-arch=sm_80", "-maxrregcount",
                                   str(registers), ptx, "-o", cubin],
                                  capture_output=True, text=True, check=True)
            stack, stores = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores",
                                      made.stderr).groups()
            return int(stack) // 4 if int(stores) else 0

        registers = MOST_REGISTERS
        more = spilled(registers)
        fine = registers
        while not more and registers > 32:
            fine = registers
            registers = registers // 8 * 8 - (0 if registers % 8 else 8)
            more = spilled(registers)
        return name, registers + more if fine == registers else min(fine, registers + more)


def write_fewest():
    fewest = dict(in_parallel(find_fewest, list(grid_cases())))
    with open(FEWEST, "w") as file:
        json.dump(fewest, file, indent=2)
        file.write("\n")
    print(f"{len(fewest)} schedules")
    return 0


def place(text):
    made = subprocess.run(["fi-opt", "-", "--fi-prepare", "--fi-lower-to-tile=f16-dot bf16-dot",
                           "--fi-place-tiles"], input=text, capture_output=True, text=True)
    if made.returncode:
        raise SystemExit(f"fi-opt: {made.stderr}\n{text}")
    return made.stdout


def estimate(case):
    name, text = case
    kernel = next(line for line in place(text).splitlines() if "fi_tile.kernel" in line and "_rows" in line)
    return name, int(re.search(r"fi_tile.registers = (\d+)", kernel).group(1))


def check_estimates():
    with open(FEWEST) as file:
        fewest = json.load(file)
    worst = 0
    for name, registers in in_parallel(estimate, list(grid_cases())):
        error = registers - fewest[name]
        worst = max(worst, abs(error))
        print(f"{name}: {registers}, {fewest[name]} needed ({error:+})")
    print(f"{'PASS' if worst <= ESTIMATE_ERROR else 'FAIL'}: at most {worst} of {ESTIMATE_ERROR} registers off")
    return 0 if worst <= ESTIMATE_ERROR else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("check", "refresh", "estimate", "grid"))
    parser.add_argument("table", nargs="?", default=TABLE)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--family", default="")
    options = parser.parse_args()
    if options.command == "check":
        return check(options.table, options.all, options.family)
    if options.command == "refresh":
        return refresh(options.table, options.family)
    return check_estimates() if options.command == "estimate" else write_fewest()


if __name__ == "__main__":
    sys.exit(main())
