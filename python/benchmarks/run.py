#===- run.py - the benchmark -------------------------------------------------------- ===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Attention kernels of fi beside those of others, on the current GPU:

    python -m benchmarks.run --packages DIR            packages made by benchmarks.packages
    python -m benchmarks.run --target sm_80            with the compiler, from text
    python -m benchmarks.run --packages DIR --only fi --rows decode prefill-16k

For each row all contenders get the same tensors. Each is checked against the same in
f32 first; what is wrong is not timed. measure.py says how time is measured. Results are
written as JSON after each row, with a table and two pictures at the end.
"""

import argparse
import datetime
import gc
import json
import pathlib
import statistics
import sys
import time
import traceback

import torch

import fi

from . import baselines, measure, norms, report
from .batch import Batch
from .contender import TOLERANCE, NotApplicable, ours
from .rows import select

BASELINES = ("sdpa", "flashinfer", "fa4", "flex")


def prepare(name, make, verbose):
    """A contender, checked and captured; or why not. Returns (record, contender, timed)."""
    record = {"name": name}
    try:
        start = time.perf_counter()
        contender = make()
        record.update(name=contender.name, family=contender.family)
        calls = contender.calls()
        calls[0]()
        torch.cuda.synchronize()
        # With compiling, loading and all else that happens once.
        record["first_call_s"] = round(time.perf_counter() - start, 2)
        record["error"] = contender.error()
        if not record["error"] <= TOLERANCE:
            record["refused"] = f"wrong: error {record['error']:.2e}, allowed {TOLERANCE:.1e}"
            return record, None, None
        record["host_us"] = round(measure.host_time(calls[0]), 2)
        if contender.plan:
            record["plan_us"] = round(measure.host_time(contender.plan, 10), 1)
        record.update(contender.describe())
        timed = measure.Timed(calls)
        record["graph_calls"], record["copies"] = timed.count, len(calls)
        return record, contender, timed
    except NotApplicable as reason:
        record["refused"] = f"does not do {reason}"
    except Exception as error:  # a contender that fails is a result, not the end
        record["refused"] = f"{type(error).__name__}: {error}"[:600]
        if verbose:
            traceback.print_exc()
    return record, None, None


def measure_row(row, arguments):
    before = measure.smi()
    if row.kind == "norm":
        batch = norms.Batch(row)
        makers = norms.ours(batch, arguments.packages, arguments.target)
    else:
        batch = Batch(row)
        makers = ours(batch, arguments.packages, arguments.split, arguments.target)
    if not makers:
        print(f"{row.name}: no package '{row.program}' in {arguments.packages}", flush=True)
    # Others take codes each in a way of its own, which nothing here speaks.
    if row.kind == "norm":
        makers += norms.others(batch, arguments.baselines if arguments.only != "fi" else ())
    elif arguments.only != "fi" and not row.codes:
        makers += baselines.makers(batch, arguments.baselines)
    prepared = [prepare(name, make, arguments.verbose) for name, make in makers]
    ready = [(record, contender, timed) for record, contender, timed in prepared if timed]
    measure.interleave([timed for _, _, timed in ready], arguments.rounds)
    after = measure.smi()
    for record, _, timed in ready:
        record["us"] = round(timed.median, 3)
        record["rounds_us"] = [round(t, 3) for t in timed.times]
        record["spread"] = round((max(timed.times) - min(timed.times)) / timed.median, 4)
        record["tflops"] = round(row.flop / timed.median / 1e6, 1)
        record["tb_s"] = round(row.bytes / timed.median / 1e6, 3)
    clocks = (before.get("clocks.sm"), after.get("clocks.sm"))
    return {
        "name": row.name, "kind": row.kind, "requests": len(row.requests), "query_tokens": row.query_tokens,
        "heads": f"{row.query_heads}/{row.kv_heads}", "dim": row.dim, "dtype": row.dtype, "page": row.page,
        "causal": row.causal, "variant": row.variant, "flop": row.flop, "bytes": row.bytes,
        "bound": "memory" if row.is_bound_by_memory else "compute",
        "cold": f"{len(batch.copies)} copies of {row.cache_bytes / 1e6:.1f} MB", "clocks_before": before,
        "clocks_after": after, "clocks_differ": None not in clocks and abs(clocks[0] - clocks[1]) > 0.03 * clocks[0],
        "contenders": [record for record, _, _ in prepared],
    }


def show(row):
    for c in sorted(row["contenders"], key=lambda c: c.get("us") or 1e30):
        if c.get("us"):
            value, unit = report.rate(row, c["us"])
            print(f"  {c['name']:44s} {c['us']:10.1f} us  {value:8.3f} {unit}  host {c['host_us']:.1f} us  "
                  f"error {c['error']:.1e}", flush=True)
        else:
            print(f"  {c['name']:44s} not measured: {c['refused'].splitlines()[0][:150]}", flush=True)


def host_time_of_run(packages, target):
    """Microseconds of plan.run() with five tensors of torch, the device kept idle: the
    smallest decode there is, many calls between two synchronisations."""
    batch = Batch(select(["decode-bs1-8k"])[0])
    makers = ours(batch, packages, "default", target)
    if not makers:
        return None
    contender = makers[0][1]()
    call = contender.calls()[0]
    call()
    best = []
    for _ in range(7):
        # Few enough that the queue of launches never fills.
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(100):
            call()
        best.append((time.perf_counter() - start) * 1e6 / 100)
        torch.cuda.synchronize()
    return {"us": round(statistics.median(best), 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", help="a directory of packages; without it rows are compiled here")
    parser.add_argument("--target", help="what rows are compiled for (default: this GPU)", default="cuda")
    parser.add_argument("--rows", nargs="*", help="parts of names of rows (default: all)")
    parser.add_argument("--only", choices=["fi"], help="leave out all others")
    parser.add_argument("--baselines", nargs="*", choices=BASELINES, default=BASELINES)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--split", default="default", help="default, balanced, none, or a number of keys")
    parser.add_argument("--out", default="results.json", help="where the results go (default: results.json)")
    parser.add_argument("--seconds", type=float, help="begin no row after so long")
    parser.add_argument("--verbose", action="store_true", help="print where a contender fails")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    arguments = parser.parse_args()
    rows = select(arguments.rows)
    if arguments.list:
        print("\n".join(row.name for row in rows))
        return 0
    if arguments.rounds < 1:
        parser.error(f"--rounds: expected a positive number, but got {arguments.rounds}")
    if not torch.cuda.is_available():
        print("error: torch sees no GPU, which the benchmark needs", file=sys.stderr)
        return 1
    if arguments.split.isdigit():
        arguments.split = int(arguments.split)
    begin = time.perf_counter()
    results = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(), "command": " ".join(sys.argv[1:]),
        "versions": {"fi": fi.runtime_version().replace("fi runtime ", "runtime "), **baselines.versions()}, "limits": measure.practical_limits(),
        "rows": [],
    }
    print(f"{results['device']}, {results['versions']}, {results['limits']}", flush=True)
    try:
        results["run_host"] = host_time_of_run(arguments.packages, arguments.target)
        print(f"plan.run() from Python: {results['run_host']}", flush=True)
    except Exception as error:  # the row of the same name says it again
        print(f"plan.run() from Python: {error}", flush=True)
    wrong = 0
    for row in rows:
        if arguments.seconds and time.perf_counter() - begin > arguments.seconds:
            print(f"{row.name}: left out, {arguments.seconds:.0f} s are over", flush=True)
            continue
        print(f"{row.name} ({time.perf_counter() - begin:.0f} s)", flush=True)
        measured = measure_row(row, arguments)
        show(measured)
        results["rows"].append(measured)
        wrong += any(report.is_ours(c) and "refused" in c for c in measured["contenders"])
        pathlib.Path(arguments.out).write_text(json.dumps(results, indent=1))
        gc.collect()
        torch.cuda.empty_cache()
    print("\n" + report.write(results, arguments.out).split("\n\n| row | contender")[0])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
