#===- summarize_tests.py - one count over lit, GoogleTest and pytest --------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Counts the cases behind a ctest run and prints `N passed, N failed`.

ctest knows a lit run or a test binary as one entry. For each entry of ctest.xml
the file of results that it left beside it is counted instead: lit.json for lit,
<Name>.json for unit.<Name>, <name>.xml (JUnit) for anything else. An entry
without such a file counts as one case; one that failed without a failed case in
its file (it crashed, say) adds one failure.
"""

import argparse
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

LIT_PASSED = {"PASS", "XFAIL", "FLAKYPASS"}
LIT_SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def count_lit(path):
    passed = failed = skipped = 0
    for test in json.loads(path.read_text())["tests"]:
        if test["code"] in LIT_PASSED:
            passed += 1
        elif test["code"] in LIT_SKIPPED:
            skipped += 1
        else:
            failed += 1
    return passed, failed, skipped


def count_gtest(path):
    passed = failed = skipped = 0
    for suite in json.loads(path.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            if case.get("failures"):
                failed += 1
            elif case["result"] == "COMPLETED":
                passed += 1
            else:
                skipped += 1
    return passed, failed, skipped


def count_junit(path):
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def count_entry(results, name, status):
    """The cases of one ctest entry: its own file of results, or itself."""
    counters = {"lit": (results / "lit.json", count_lit)}
    if name.startswith("unit."):
        counters[name] = (results / f"{name[5:]}.json", count_gtest)
    path, counter = counters.get(name, (results / f"{name}.xml", count_junit))
    counts = (0, 0, 0)
    if path.exists():
        try:
            counts = counter(path)
        except (ValueError, KeyError, ElementTree.ParseError) as error:
            print(f"{path.name}: unreadable results ({error})")
            status = "fail"
    elif status == "run":
        return 1, 0, 0
    elif status not in ("fail", "run"):
        return 0, 0, 1
    passed, failed, skipped = counts
    if status == "fail" and failed == 0:
        failed = 1
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--ctest-status", type=int, default=0)
    arguments = parser.parse_args()

    total = [0, 0, 0]
    ctest = arguments.results / "ctest.xml"
    if ctest.exists():
        for case in ElementTree.parse(ctest).getroot().iter("testcase"):
            counts = count_entry(arguments.results, case.get("name"), case.get("status"))
            total = [a + b for a, b in zip(total, counts)]
            skipped = f", {counts[2]} skipped" if counts[2] else ""
            print(f"  {case.get('name')}: {counts[0]} passed, {counts[1]} failed{skipped}"
                  f" ({float(case.get('time') or 0):.1f} s)")
    if arguments.ctest_status != 0 and total[1] == 0:
        print(f"ctest ended with status {arguments.ctest_status} without a failed case")
        total[1] = 1
    if total[0] + total[1] == 0:
        print("no test ran")
    if total[2]:
        print(f"{total[2]} skipped (what they need is not on this machine)")
    print(f"{total[0]} passed, {total[1]} failed")
    return 0 if total[0] > 0 and total[1] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
