#===- plan.py - plans of batches ------------------------------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Plans: a program, planned for a batch."""

import json
import sys

from . import _runtime

_SPLITS = {"default": 0, "balanced": 1, "none": 3}


def _options(workers, split, rows, shapes, stream, program, graph):
    options = _runtime.PlanOptions()
    options.workers = workers
    if isinstance(split, int) and not isinstance(split, bool):
        if split <= 0:
            raise _runtime.Error(f"plan: split: expected a positive number of keys, but got {split}")
        options.split_policy, options.split_keys = 2, split
    elif split in _SPLITS:
        options.split_policy = _SPLITS[split]
    else:
        raise _runtime.Error(
            f"plan: split: expected 'default', 'balanced', 'none' or a number of keys, but got {split!r}"
        )
    options.rows = rows
    if shapes is not None:
        names = [a.name for a in program.run_arguments]
        for name in shapes:
            if name not in names:
                raise _runtime.Error(
                    f"plan: shapes: '{name}' is not a run argument; they are {', '.join(names) or 'none'}"
                )
        shapes = [shapes.get(name) for name in names]
    options.shapes = shapes
    options.stream = _stream(stream)
    options.checked, options.graph_safe = graph["checked"], graph["graph_safe"]
    options.max_requests, options.max_request_rows, options.max_pages = (
        graph["max_requests"], graph["max_request_rows"], graph["max_pages"]
    )
    options.profile_bytes = graph["profile_bytes"]
    return options


def _stream(stream):
    if stream is None:
        # What torch launches next comes after what the plan copies.
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            return torch.cuda.current_stream().cuda_stream
        return 0
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    return stream.cuda_stream


def _ordinal(device, program):
    if not program.is_cuda:
        if device not in (None, "cpu") and getattr(device, "type", "") != "cpu":
            raise _runtime.Error(
                f"plan: device: '{program.name}' is compiled for the cpu, but got {device!r}; compile it for the device"
            )
        return -1
    if device is None:
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            return torch.cuda.current_device()
        return 0
    if isinstance(device, int) and device >= 0:
        return device
    kind, _, index = str(device).partition(":")
    if kind != "cuda" or (index and not index.isdigit()):
        raise _runtime.Error(
            f"plan: device: expected an ordinal, 'cuda' or 'cuda:0' and so on for '{program.name}', which is "
            f"compiled for {program.target}, but got {device!r}"
        )
    return int(index) if index else _ordinal(None, program)


def _values(program, values, named):
    """Values by position, then by name, in the program's order."""
    if not named:
        return values
    arguments = [a.name for a in program.plan_arguments]
    for name in named:
        if name not in arguments[len(values):]:
            raise _runtime.Error(
                f"plan: '{name}' is not among the values ({', '.join(arguments)}), or was given by position already"
            )
    missing = [name for name in arguments[len(values):] if name not in named]
    if missing:
        raise _runtime.Error(f"plan: expected a value of '{missing[0]}', but got none")
    return values + tuple(named[name] for name in arguments[len(values):])


class Plan(_runtime.Plan):
    """A batch, planned: who computes what, once for all layers of a model.

    Values are the program's plan arguments (tables in host memory), in order or by
    name. `split` says how long sequences are split over workers: "default" (as the
    package says), "balanced", "none", or a number of keys (always the same pieces, so
    that a result does not depend on the rest of the batch). `workers` is the number of
    threads, or of CTAs on a GPU; 0: all. `rows` is the number of rows of the query
    where tables end before it (padding). `shapes` gives sizes by name of a run argument
    that no table tells. `device` is where a program for a GPU runs ("cuda:1"), and
    `stream` the stream in which tables are copied there.

    With `graph_safe` a run may be captured in a CUDA graph that stays good when the
    plan is updated: its batches then have at most `max_requests` requests of at most
    `max_request_rows` rows, `rows` rows in all and `max_pages` entries of page tables;
    0: as the first batch. `checked` makes runs wait for each launch, so that a fault
    names its kernel. `profile_bytes` bounds the log of a program that was compiled with
    `profile` (0: 256 MiB).

    A plan has one workspace: on a device, runs that are under way at once in several
    streams need a plan each.
    """

    def __init__(
        self, program, *values, device=None, split="default", workers=0, rows=0, shapes=None, stream=None,
        graph_safe=False, max_requests=0, max_request_rows=0, max_pages=0, checked=False, profile_bytes=0,
        **named
    ):
        self.program = program
        self._defaults = (workers, split, rows, shapes)
        self._graph = {"graph_safe": graph_safe, "max_requests": max_requests, "max_request_rows": max_request_rows,
                       "max_pages": max_pages, "checked": checked, "profile_bytes": profile_bytes}
        super().__init__(
            program._package,
            _values(program, values, named),
            _ordinal(device, program),
            _options(workers, split, rows, shapes, stream, program, self._graph),
        )

    def update(self, *values, split=None, rows=None, shapes=None, stream=None, **named):
        """Plans another batch into this plan, which reuses its memory. Options that
        are not given stay as they are. On failure the plan is as before."""
        workers, *defaults = self._defaults
        given = (split, rows, shapes)
        options = (workers, *(d if g is None else g for g, d in zip(given, defaults)))
        self._update(
            _values(self.program, values, named), _options(*options, stream, self.program, self._graph)
        )
        self._defaults = options

    def timeline(self, stream=None):
        """What the warps of a GPU did when, in the last run, of a program that was
        compiled with `profile`: a trace for Chrome's and Perfetto's viewers, to be
        written by json.dump. Waits for `stream` (default: the library's current one),
        in which that run was launched."""
        return json.loads(self._timeline(_stream(stream)))

    def __repr__(self):
        return f"<fi.Plan of {self.program.name}, batch {self.generation}, {self.workspace_bytes} bytes of workspace>"
