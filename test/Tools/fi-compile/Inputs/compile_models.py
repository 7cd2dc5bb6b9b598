#===- compile_models.py - every model within its bounds ----------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
# compile_models.py MODELS DIRECTORY [OPTION...]: runs fi-compile for each .json of
# MODELS, and looks at what it reports and wrote.
#
#===--------------------------------------------------------------------------===#
import json
import os
import subprocess
import sys

MOST_KERNELS, MOST_BYTES = 40, 2 << 20

models, directory, *options = sys.argv[1:]
faults = []
names = sorted(name[:-len(".json")] for name in os.listdir(models) if name.endswith(".json"))
for name in names:
    out = os.path.join(directory, name)
    made = subprocess.run(["fi-compile", os.path.join(models, name + ".json"), "--no-cubin", "--quiet",
                           f"--max-kernels={MOST_KERNELS}", "-o", out, *options],
                          capture_output=True, text=True)
    if made.returncode:
        faults.append(made.stderr.strip())
        continue
    with open(os.path.join(out, "model.json")) as file:
        report = json.load(file)
    kernels = report["kernels"]
    print(f"{name}: {report['kernels_per_target']} kernels")
    if report["model"] != name:
        faults.append(f"{name}: its report is of {report['model']}")
    if report["compressed_bytes"] > MOST_BYTES * len(report["targets"]):
        faults.append(f"{name}: {report['compressed_bytes']} bytes compressed")
    on_disk = 0
    for program in report["programs"]:
        path = os.path.join(out, program["name"])
        for root, _, files in os.walk(path):
            on_disk += sum(os.path.getsize(os.path.join(root, file)) for file in files)
        # What is reported of kernels is what the package has.
        for target in report["targets"]:
            place = path if len(report["targets"]) == 1 else os.path.join(path, target)
            with open(os.path.join(place, "kernels.ptx")) as file:
                text = file.read()
            mine = [kernel for kernel in kernels
                    if kernel["program"] == program["name"] and kernel["target"] == target]
            if text.count(".visible .entry ") != len(mine) or not mine:
                faults.append(f"{name}: {program['name']} has not the kernels that are reported")
            if sum(kernel["ptx"] for kernel in mine) != len(text.encode()):
                faults.append(f"{name}: sizes of {program['name']} do not add up")
    if on_disk != report["bytes"]:
        faults.append(f"{name}: {report['bytes']} bytes reported, {on_disk} written")
for fault in faults:
    print(fault)
print("FAIL" if faults else f"PASS: {len(names)} models")
sys.exit(bool(faults))
