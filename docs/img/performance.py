"""Draws docs/img/performance.svg and writes the table of docs/performance.md, both from performance.csv.

Usage: performance.py [--check]   (--check: exit with 1 if either differs from the data, and write nothing)
"""

import csv
import html
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent / "performance.md"
COLORS = {"Mangrove embedded": "#1b7f5c", "Ladybug embedded": "#8e8cd8", "Mangrove server": "#74c69d", "TinkerGraph server": "#e59f71"}
LEFT, RIGHT, TOP, ROW = 220, 20, 70, 22
WIDTH, LOW, HIGH = 860, 0, 7   # powers of ten, in microseconds


def read():
    lines = [line for line in (HERE / "performance.csv").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def time(microseconds):
    for unit, size in (("s", 1e6), ("ms", 1e3), ("µs", 1)):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.2g} µs"


def x(microseconds):
    return LEFT + (math.log10(microseconds) - LOW) / (HIGH - LOW) * (WIDTH - LEFT - RIGHT)


def drawing(rows):
    height = TOP + ROW * len(rows) + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
           '<text x="10" y="20" font-size="14" font-weight="bold">Time of an operation, logarithmic; left is faster</text>']
    at = 10
    for name, color in COLORS.items():
        out.append(f'<circle cx="{at + 5}" cy="38" r="5" fill="{color}"/><text x="{at + 15}" y="42">{name}</text>')
        at += 30 + 7 * len(name)
    bottom = TOP + ROW * len(rows)
    for power in range(LOW, HIGH + 1):
        at = x(10 ** power)
        out.append(f'<line x1="{at:.1f}" y1="{TOP - 10}" x2="{at:.1f}" y2="{bottom}" stroke="#dddddd"/>'
                   f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#555555">{time(10 ** power)}</text>')
    for index, row in enumerate(rows):
        y = TOP + ROW * index + ROW / 2 - 6
        out.append(f'<text x="{LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">{html.escape(row["case"])}</text>')
        values = [float(row[name]) for name in COLORS]
        out.append(f'<line x1="{x(min(values)):.1f}" y1="{y:.1f}" x2="{x(max(values)):.1f}" y2="{y:.1f}" stroke="#cccccc"/>')
        for (name, color), value in zip(COLORS.items(), values):
            out.append(f'<circle cx="{x(value):.1f}" cy="{y:.1f}" r="5" fill="{color}"><title>{html.escape(row["case"])}, {name}: {time(value)}</title></circle>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def table(rows):
    lines = ["| | " + " | ".join(COLORS) + " |", "|---|" + "---|" * len(COLORS)]
    lines += ["| " + row["case"] + " | " + " | ".join(time(float(row[name])) for name in COLORS) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main():
    rows = read()
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split("<!-- table: begin -->\n")
    _, after = rest.split("<!-- table: end -->")
    wanted = {PAGE: f"{before}<!-- table: begin -->\n{table(rows)}<!-- table: end -->{after}", HERE / "performance.svg": drawing(rows)}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        if stale:
            sys.exit("run docs/img/performance.py: " + ", ".join(path.name for path in stale) + " differ from performance.csv")
        return
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")


if __name__ == "__main__":
    main()
