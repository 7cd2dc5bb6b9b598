#===- check_resources.py - registers and spills of the standard kernels -----===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
# check_resources.py COMMAND [TABLE]
#
#   check     compares what ptxas says of the standard kernels with the table
#   refresh   writes the table
#   estimate  compares what fi-tile-estimate-registers says of a grid of schedules
#             with the fewest registers for which ptxas does not spill before states
#             are merged, which are in a table of their own: that needs no ptxas
#   grid      finds those again, by assembling each kernel with fewer and fewer
#             (minutes), and writes their table
#
# The standard kernels are the bodies that fi chooses for causal attention of 32
# heads over 8 KV heads in pages of 16 keys. Tools are found by PATH; a version of
# ptxas other than the table's may give other registers, within a tolerance.
#
#===--------------------------------------------------------------------------===#
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

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


def compile_kernels(text):
    """What ptxas says of each kernel of a program, and its warnings."""
    with tempfile.TemporaryDirectory() as directory:
        source = os.path.join(directory, "p.mlir")
        package = os.path.join(directory, "p.fipkg")
        with open(source, "w") as file:
            file.write(text)
        made = subprocess.run(["fi-translate", "--fi-to-package", source, "-o", package],
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


def measure():
    cases = [(chip, element, dim) for chip in CHIPS for element in TYPES for dim in DIMS]
    results = in_parallel(lambda case: compile_kernels(program(case[1], case[2], case[0])), cases)
    table, warnings = {}, []
    for (chip, element, dim), (kernels, warned, version) in zip(cases, results):
        for symbol, uses in kernels.items():
            table[f"{chip} {element} {dim} {symbol}"] = uses
        warnings += [f"{chip} {element} {dim}: {text}" for text in warned]
    return {"ptxas": version, "kernels": table}, warnings


def print_table(table, path):
    with open(path, "w") as file:
        file.write('{\n  "ptxas": %s,\n  "kernels": {\n' % json.dumps(table["ptxas"]))
        rows = [f"    {json.dumps(name)}: {json.dumps(uses)}" for name, uses in table["kernels"].items()]
        file.write(",\n".join(rows) + "\n  }\n}\n")


def check(path):
    with open(path) as file:
        golden = json.load(file)
    table, warnings = measure()
    faults = [f"ptxas warns: {text}" for text in warnings]
    for name in sorted(golden["kernels"].keys() | table["kernels"].keys()):
        before, now = golden["kernels"].get(name), table["kernels"].get(name)
        if not before or not now:
            faults.append(f"{name}: {'gone' if before else 'not in the table'}")
            continue
        for what, value in now.items():
            allowed = TOLERANCE.get(what, 0) if before[what] else 0
            if abs(value - before[what]) > allowed:
                faults.append(f"{name}: {what}: {value}, but {before[what]} in the table")
    for fault in faults:
        print(fault)
    if faults:
        print(f"FAIL: ptxas {table['ptxas']}, the table is of {golden['ptxas']}; where this is meant:\n"
              f"  {os.path.basename(__file__)} refresh")
        return 1
    print(f"PASS: {len(table['kernels'])} kernels")
    return 0


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
    options = parser.parse_args()
    if options.command == "check":
        return check(options.table)
    if options.command == "refresh":
        table, warnings = measure()
        for text in warnings:
            print(f"ptxas warns: {text}")
        print_table(table, options.table)
        return 1 if warnings else 0
    return check_estimates() if options.command == "estimate" else write_fewest()


if __name__ == "__main__":
    sys.exit(main())
