#!/usr/bin/env python3
# ===- prove_gpu.py - what the emulator and the tests claim, on a GPU --------------=== #
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------------=== #
"""Proves on a machine with a GPU that kernels do there what they do in the emulator.

  scripts/prove_gpu.py --tools=build/release [--only=WORD] [--skip=WORD] [--json=FILE]

Needs Python 3.9, the CUDA driver, and these programs, in the folder of --tools or in its
bin and unittests: fi-run, fi-gpu-smoke, fi-emu-cases, fi-gpu-integration-tests. No
compiler, no package of Python. Four parts:

  cases      the emulator's test kernels: PTX through the driver, words beside words
  tests      the tests of the emulated backend with FI_TEST_GPU=cuda, and fi-gpu-smoke
  programs   programs of fi on the GPU, beside the emulator and the reference
  sanitizer  the same programs under compute-sanitizer: memcheck, initcheck, synccheck,
             racecheck (found beside nvcc, in PATH, or given by --sanitizer)

A finding of the sanitizer is a failure unless test/data/gpu/sanitizer-accepted.json
explains it. Prints a line a check and `N passed, N failed`. Status: 0 all passed, 1 not,
77 no GPU.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test" / "Unit" / "Emulator"))
import check_on_gpu  # noqa: E402

ATTENTION = """!ix   = tensor<?xi32>
!lse  = tensor<?x{heads}xf32>
!pool = memref<?x{page}x{kv_heads}x{dim}x{type}>
!kv   = !fi.paged_kv<{page}x{kv_heads}x{dim}x{type}, NHD>
!q    = tensor<?x{heads}x{dim}x{type}>
module attributes {{fi.target = #fi.target<sm_80>}} {{
fi.program @p
    plan(%qo_indptr: !ix, %kv_indptr: !ix, %kv_indices: !ix, %last_page_len: !ix)
    run(%q: !q, %k: !pool, %v: !pool) -> (!q, !lse) {{
  %kv = fi.view.paged %k, %v tables(%kv_indptr, %kv_indices, %last_page_len : !ix, !ix, !ix) : !pool, !pool -> !kv
  %o, %lse = fi.attention %q rows(%qo_indptr : !ix) over %kv scale(0.125) mask(#fi.causal){split} : !q over !kv -> !q, !lse
  fi.return %o, %lse : !q, !lse
}}
}}
"""

# Shapes that a sanitizer bears: name, (query tokens, keys) of each request, splits.
BATCHES = {
    "prefill": ([(70, 130), (33, 33)], ""),
    "decode": ([(1, 300), (1, 77), (1, 1)], " split(#fi.split<fixed = 64>)"),
    "mixed": ([(40, 96), (1, 200), (4, 20), (0, 9), (1, 64)], " split(#fi.split<fixed = 64>)"),
}


def programs():
    """(name, text, batch) of every program that is run."""
    for name, (requests, split) in BATCHES.items():
        for element, page in (("f16", 16), ("f16", 1), ("bf16", 16), ("bf16", 1)):
            text = ATTENTION.format(heads=4, kv_heads=2, dim=128, page=page, type=element, split=split)
            batch = {"seed": 7, "requests": [{"q_len": q, "kv_len": k} for q, k in requests]}
            yield f"{name}-{element}-page{page}", text, batch


class Proof:
    def __init__(self, arguments):
        self.arguments = arguments
        self.rows = []

    def wants(self, name):
        only, skip = self.arguments.only, self.arguments.skip
        return (not only or any(w in name for w in only)) and not any(w in name for w in skip)

    def check(self, name, body):
        """Runs a check, which gives a remark or raises Failure."""
        if not self.wants(name):
            return
        began = time.monotonic()
        try:
            remark, good = body() or "", True
        except Failure as failure:
            remark, good = str(failure), False
        seconds = time.monotonic() - began
        self.rows.append({"check": name, "passed": good, "seconds": round(seconds, 1), "remark": remark})
        first, *more = remark.splitlines() or [""]
        print(f"{'ok  ' if good else 'FAIL'} {name:44} {seconds:6.1f} s  {first}", flush=True)
        for line in more[:40]:
            print("       " + line)

    def tool(self, name):
        for folder in ("", "bin", "unittests", "test/Unit/Emulator"):
            path = self.arguments.tools / folder / name
            if path.is_file():
                if not os.access(path, os.X_OK):
                    path.chmod(0o755)
                return str(path)
        raise Failure(f"{name} is not in {self.arguments.tools}, nor in its bin and unittests")


class Failure(Exception):
    pass


def run(command, environment=None, limit=900):
    """Status and the output of both kinds."""
    try:
        done = subprocess.run(
            [str(c) for c in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, **(environment or {})},
            timeout=limit,
            cwd=ROOT,
        )
    except subprocess.TimeoutExpired as error:
        out = error.stdout or b""
        return 124, f"no end after {limit} s\n" + (out if isinstance(out, str) else out.decode(errors="replace"))
    except OSError as error:
        return 127, str(error)
    return done.returncode, done.stdout


def tail(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])


# ===- The parts ----------------------------------------------------------------------=== #


def prove_cases(proof, scratch):
    folder = scratch / "cases"
    folder.mkdir()
    kernels = ROOT / "test" / "Unit" / "Emulator" / "Kernels"
    status, output = run([proof.tool("fi-emu-cases"), folder], {"FI_EMULATOR_KERNELS": str(kernels)})
    if status:
        raise Failure(f"fi-emu-cases ended with {status}\n{tail(output)}")
    # A case that faults must not end the others.
    with check_on_gpu.Gpu() as gpu, check_on_gpu.Checker(folder) as checker:
        for case in json.loads((folder / "cases.json").read_text()):
            if not check_on_gpu.runs(gpu, case):
                continue

            def compare(case=case):
                good, remark = checker.check(case)
                if not good:
                    raise Failure(remark)
                return remark

            proof.check("cases: " + case["name"], compare)


def prove_tests(proof):
    def backend():
        # One process a few cores: most of the time goes into compiling.
        shards = max(1, min(8, (os.cpu_count() or 1) // 2))
        with tempfile.TemporaryDirectory() as folder:
            reports = [pathlib.Path(folder) / f"{i}.json" for i in range(shards)]

            def shard(i):
                return run(
                    [
                        proof.tool("fi-gpu-integration-tests"),
                        "--gtest_filter=*Emulated*:*GPU*-GPUErrors*:*Mutations*:*AtEveryStage*",
                        f"--gtest_output=json:{reports[i]}",
                    ],
                    {
                        "FI_TEST_GPU": proof.arguments.backend,
                        "GTEST_TOTAL_SHARDS": str(shards),
                        "GTEST_SHARD_INDEX": str(i),
                    },
                    limit=1800,
                )

            with concurrent.futures.ThreadPoolExecutor(shards) as pool:
                ended = list(pool.map(shard, range(shards)))
            results = [json.loads(r.read_text()) for r in reports if r.exists()]
        status = max(status for status, _ in ended)
        output = "\n".join(output for status, output in ended if status)
        result = {key: sum(r[key] for r in results) for key in ("tests", "failures")}
        passed = result["tests"] - result["failures"]
        remark = f"{passed} of {result['tests']} tests of the backend pass"
        if status or not passed or result["failures"]:
            raise Failure(remark + "\n" + tail(output, 30))
        return remark

    def smoke():
        kind, _, chip = proof.arguments.backend.partition(":")
        emulate = ["--emulate", chip] if kind == "emulated" else []
        status, output = run([proof.tool("fi-gpu-smoke"), *emulate, ROOT / "test/data/gpu/naive"])
        if status:
            raise Failure(f"status {status}\n{tail(output)}")
        return tail(output, 1)

    proof.check("tests: backend", backend)
    proof.check("tests: smoke", smoke)


def write_programs(scratch):
    written = []
    for name, text, batch in programs():
        program, requests = scratch / f"{name}.mlir", scratch / f"{name}.json"
        program.write_text(text)
        requests.write_text(json.dumps(batch))
        written.append((name, program, requests))
    return written


def arrays(path):
    """The bytes of each array of an archive."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in sorted(archive.namelist())}


def prove_programs(proof, written, scratch):
    for name, program, batch in written:

        def beside_reference(program=program, batch=batch, name=name):
            saved = scratch / f"{name}.npz"
            status, output = run(
                [
                    proof.tool("fi-run"),
                    program,
                    f"--batch={batch}",
                    f"--backend={proof.arguments.backend}",
                    "--compare=emulated:sm_80,reference",
                    f"--save={saved}",
                ]
            )
            if status:
                raise Failure(f"status {status}\n{tail(output)}")
            # Once more: equal bits.
            again = scratch / f"{name}.again.npz"
            status, output = run(
                [
                    proof.tool("fi-run"),
                    program,
                    f"--batch={batch}",
                    f"--backend={proof.arguments.backend}",
                    f"--save={again}",
                ]
            )
            if status:
                raise Failure(f"status {status}\n{tail(output)}")
            if arrays(saved) != arrays(again):
                raise Failure("two runs differ")
            return "equals emulator and reference; two runs give equal bits"

        proof.check("programs: " + name, beside_reference)


def find_sanitizer(given):
    places = [given] if given else [shutil.which("compute-sanitizer")]
    if not given:
        places += sorted(glob.glob("/usr/local/cuda*/bin/compute-sanitizer"), reverse=True)
        places += sorted(glob.glob("/opt/nvidia/**/compute-sanitizer", recursive=True), reverse=True)
    return next((p for p in places if p and os.path.isfile(p)), None)


def findings(output):
    """Each finding of a report: its first line and those that belong to it."""
    found = []
    for line in output.splitlines():
        if not line.startswith("========="):
            continue
        text = line[len("=========") :]
        content = text.strip()
        begins = text.startswith(" ") and not text.startswith("  ")
        if begins and content and not re.match(r"(COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY|LEAK SUMMARY)", content):
            found.append([content])
        elif content and found and text.startswith("  "):
            found[-1].append(content)
    return found


def accepted_by(entries, tool, program, finding):
    text = "\n".join(finding)
    for entry in entries:
        if entry["tool"] == tool and re.search(entry["program"], program) and re.search(entry["finding"], text):
            return entry
    return None


def prove_sanitizer(proof, written):
    sanitizer = find_sanitizer(proof.arguments.sanitizer)
    entries = json.loads((ROOT / "test/data/gpu/sanitizer-accepted.json").read_text())["accepted"]

    def missing():
        raise Failure(
            "compute-sanitizer is not here: install the CUDA toolkit's, or give it with --sanitizer=PATH"
        )

    if not sanitizer:
        proof.check("sanitizer: tool", missing)
        return
    for tool in ("memcheck", "initcheck", "synccheck", "racecheck"):
        for name, program, batch in written:

            def look(tool=tool, name=name, program=program, batch=batch):
                status, output = run(
                    [
                        sanitizer,
                        f"--tool={tool}",
                        "--error-exitcode=86",
                        # Errors that calls return are the runtime's to handle: it asks
                        # whose memory a pointer is, which fails for the host's.
                        *(["--report-api-errors=no"] if tool == "memcheck" else []),
                        "--print-limit=20",
                        proof.tool("fi-run"),
                        program,
                        f"--batch={batch}",
                        f"--backend={proof.arguments.backend}",
                    ],
                    limit=600,
                )
                found = findings(output)
                unknown = [f for f in found if not accepted_by(entries, tool, name, f)]
                if "SUMMARY" not in output:
                    raise Failure(f"{tool} gave no summary, status {status}\n{tail(output)}")
                if unknown:
                    shown = "\n".join("\n".join(f[:10]) for f in unknown[:3])
                    raise Failure(f"{len(unknown)} findings that nothing explains\n{shown}")
                if status not in (0, 86) or (status == 86 and not found):
                    raise Failure(f"status {status}\n{tail(output)}")
                return f"{len(found)} findings, explained" if found else "clean"

            proof.check(f"sanitizer: {tool} {name}", look)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "release", help="where the programs are")
    parser.add_argument("--sanitizer", help="compute-sanitizer")
    parser.add_argument("--only", action="append", default=[], help="checks whose names have this word (may be repeated)")
    parser.add_argument("--skip", action="append", default=[], help="not these")
    parser.add_argument(
        "--backend",
        default="cuda",
        help="of fi-run; with emulated:sm_80 the script itself can be tried without a GPU, but for the cases",
    )
    parser.add_argument("--json", type=pathlib.Path, help="write the table there too")
    arguments = parser.parse_args()
    arguments.tools = arguments.tools.resolve()
    real = arguments.backend.startswith("cuda")
    if real:
        try:
            with check_on_gpu.Gpu() as gpu:
                print(f"GPU: {gpu.name}, driver for CUDA {gpu.driver}", flush=True)
        except check_on_gpu.NoGpu as reason:
            print(f"prove_gpu: nothing was proved: {reason}")
            return 77
    else:
        print(f"{arguments.backend}: this tries the script and proves nothing of a GPU")
    proof = Proof(arguments)
    with tempfile.TemporaryDirectory(prefix="fi-prove-") as folder:
        scratch = pathlib.Path(folder)
        written = write_programs(scratch)
        parts = {
            "cases": lambda: prove_cases(proof, scratch) if real else None,
            "tests": lambda: prove_tests(proof),
            "programs": lambda: prove_programs(proof, written, scratch),
            "sanitizer": lambda: prove_sanitizer(proof, written),
        }
        for name, part in parts.items():
            if not any(name in w or w.startswith(name) for w in arguments.skip) or arguments.only:
                try:
                    part()
                except Failure as failure:

                    def again(failure=failure):
                        raise failure

                    proof.check(f"{name}: all", again)
    failed = sum(not row["passed"] for row in proof.rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(proof.rows, indent=1) + "\n")
    print(f"{len(proof.rows) - failed} passed, {failed} failed")
    return 1 if failed or not proof.rows else 0


if __name__ == "__main__":
    sys.exit(main())
