#===- report.py - tables and pictures of results ----------------------------------- ===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Tables and pictures of results:

    python -m benchmarks.report results.json

writes results.md, results-bars.svg and results-roofline.svg beside it.
"""

import json
import math
import pathlib
import sys
from html import escape


def is_ours(contender):
    return contender["name"].split()[0] == "fi"


def best(contenders):
    timed = [c for c in contenders if c.get("us")]
    return min(timed, key=lambda c: c["us"]) if timed else None


def rate(row, us):
    """The rate of a row in its own unit."""
    if row["bound"] == "memory":
        return row["bytes"] / us / 1e6, "TB/s"
    return row["flop"] / us / 1e6, "TFLOP/s"


def summarize(row):
    ours = best([c for c in row["contenders"] if is_ours(c)])
    other = best([c for c in row["contenders"] if not is_ours(c)])
    return ours, other


def table(results):
    """Markdown: one line a row, then one line a contender."""
    limits = results["limits"]
    lines = [
        f"{results['device']}, {results['date']}, versions: "
        + ", ".join(f"{k} {v}" for k, v in results["versions"].items()),
        f"In the same run: matrix product of 8192^3 in bf16 {limits['matmul_tflops']} TFLOP/s, copy "
        f"{limits['copy_tb_s']} TB/s, read {limits['read_tb_s']} TB/s.",
        "",
        "| row | fi us | rate | of limit | best other us | rate | which | fi / other |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in results["rows"]:
        ours, other = summarize(row)
        cells = [row["name"]]
        if ours:
            value, unit = rate(row, ours["us"])
            limit = max(limits["copy_tb_s"], limits["read_tb_s"]) if unit == "TB/s" else limits["matmul_tflops"]
            name = "" if ours["name"] == "fi" else f" ({ours['name'][3:]})"
            cells += [f"{ours['us']:.1f}{name}", f"{value:.{2 if unit == 'TB/s' else 0}f} {unit}", f"{value / limit:.0%}"]
        else:
            cells += ["-", "-", "-"]
        if other:
            value, unit = rate(row, other["us"])
            cells += [f"{other['us']:.1f}", f"{value:.{2 if unit == 'TB/s' else 0}f} {unit}", other["name"]]
        else:
            cells += ["-", "-", "-"]
        cells.append(f"{other['us'] / ours['us']:.2f}x" if ours and other else "-")
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "| row | contender | kernels | us | spread | plan us | host us | error | graph of |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in results["rows"]:
        for c in sorted(row["contenders"], key=lambda c: c.get("us") or math.inf):
            if c.get("us"):
                cells = [row["name"], c["name"], c["family"], f"{c['us']:.1f}", f"{c['spread']:.1%}",
                         f"{c['plan_us']:.0f}" if c.get("plan_us") else "-", f"{c['host_us']:.1f}",
                         f"{c['error']:.1e}", str(c["graph_calls"])]
            else:
                reason = c["refused"].replace("|", "/").splitlines()[0][:120]
                cells = [row["name"], c["name"], f"not measured: {reason}", *["-"] * 6]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


#===- Pictures -------------------------------------------------------------------===#

OURS, OTHERS = "#1b6ca8", ("#b9b9b9", "#8f8f8f", "#d9c58b", "#c9a3a3", "#a3c9b0", "#c3b3dd", "#99b9c9")


def _svg(width, height, body):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _text(x, y, text, anchor="start", **style):
    style = "".join(f' {k.replace("_", "-")}="{v}"' for k, v in style.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(text)}</text>'


def _rect(x, y, w, h, fill):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(w, 0):.1f}" height="{h:.1f}" fill="{fill}"/>'


def bars(results):
    """The speed of each contender as a part of the fastest's, row by row."""
    left, scale, line = 330, 420, 15
    y, body = 34, [_text(10, 20, f"speed relative to the fastest, {results['device']}", font_weight="bold")]
    for row in results["rows"]:
        timed = sorted((c for c in row["contenders"] if c.get("us")), key=lambda c: c["us"])
        if not timed:
            continue
        body.append(_text(10, y + 11, row["name"], font_weight="bold"))
        y += line
        for i, c in enumerate(timed):
            share = timed[0]["us"] / c["us"]
            value, unit = rate(row, c["us"])
            body.append(_text(left - 6, y + 11, c["name"], "end"))
            body.append(_rect(left, y + 1, share * scale, line - 3, OURS if is_ours(c) else OTHERS[i % len(OTHERS)]))
            body.append(_text(left + share * scale + 5, y + 11, f"{c['us']:.1f} us, {value:.3g} {unit}"))
            y += line
        y += 6
    return _svg(left + scale + 180, y + 10, body)


def roofline(results):
    """Rates over FLOP per byte, under what this GPU reaches on a product and a read."""
    limits = results["limits"]
    peak, memory = limits["matmul_tflops"], max(limits["read_tb_s"], limits["copy_tb_s"])
    left, top, width, height = 60, 40, 720, 420
    low_x, high_x, low_y, high_y = 0, 5, -1, 3.2  # powers of ten

    def at(intensity, tflops):
        x = left + (math.log10(intensity) - low_x) / (high_x - low_x) * width
        y = top + height - (math.log10(max(tflops, 10**low_y)) - low_y) / (high_y - low_y) * height
        return x, y

    body = [_text(10, 20, f"roofline, {results['device']}: {peak:.0f} TFLOP/s, {memory:.2f} TB/s as measured",
                  font_weight="bold")]
    for power in range(low_x, high_x + 1):
        x, _ = at(10**power, 1)
        body.append(f'<path d="M{x:.1f} {top}V{top + height}" stroke="#e5e5e5"/>')
        body.append(_text(x, top + height + 16, f"{10**power:g}", "middle"))
    for power in range(low_y, int(high_y) + 1):
        _, y = at(1, 10**power)
        body.append(f'<path d="M{left} {y:.1f}H{left + width}" stroke="#e5e5e5"/>')
        body.append(_text(left - 6, y + 4, f"{10**power:g}", "end"))
    ridge = peak / memory
    (x0, y0), (x1, y1), (x2, y2) = at(1, memory), at(ridge, peak), at(10**high_x, peak)
    body.append(f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" fill="none" stroke="#444" stroke-width="1.5"/>')
    body.append(_text(left + width / 2, top + height + 34, "FLOP per byte", "middle"))
    body.append(_text(left, top - 8, "TFLOP/s"))
    for number, row in enumerate(results["rows"], 1):
        for c, color in zip(summarize(row), (OURS, "#c0504d")):
            if c:
                x, y = at(row["flop"] / row["bytes"], row["flop"] / c["us"] / 1e6)
                body.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}" fill-opacity="0.8">'
                            f"<title>{escape(row['name'])}: {escape(c['name'])}</title></circle>")
                if color == OURS:
                    body.append(_text(x + 6, y + 4, str(number), font_size="9"))
    x = left + width + 20
    body += [_text(x, top, "fi", fill=OURS, font_weight="bold"), _text(x + 20, top, "best other", fill="#c0504d")]
    body += [_text(x, top + 14 * (i + 1), f"{i + 1} {row['name']}") for i, row in enumerate(results["rows"])]
    return _svg(left + width + 240, max(top + height + 50, top + 14 * (len(results["rows"]) + 2)), body)


def write(results, path):
    """The table and the pictures beside the JSON file; returns the table."""
    path = pathlib.Path(path)
    text = table(results)
    path.with_suffix(".md").write_text(text)
    path.with_name(path.stem + "-bars.svg").write_text(bars(results))
    path.with_name(path.stem + "-roofline.svg").write_text(roofline(results))
    return text


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    print(write(json.loads(pathlib.Path(sys.argv[1]).read_text()), sys.argv[1]))
