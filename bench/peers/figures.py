"""Computes the report from nanoseconds: medians, tables, and JSON in the format of all benches here."""

import math


def median(samples):
    """The middle sample; of two middle ones the upper one, as in the other benches."""
    return sorted(samples)[len(samples) // 2]


def percentile(samples, share):
    """The quantile of the samples by nearest rank."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Timing:
    """The times of repetitions, in nanoseconds an operation.

    `mark` stands behind the time in tables: a footnote's.
    """

    def __init__(self, repetitions, mark=""):
        """`repetitions`: a list for each, with the nanoseconds of its operations."""
        self.mark = mark
        means = [sum(nanos) / len(nanos) for nanos in repetitions]
        single = [sample for nanos in repetitions for sample in nanos]
        self.median, self.min, self.max = median(means), min(means), max(means)
        self.p50, self.p99 = percentile(single, 0.5), percentile(single, 0.99)
        self.repetitions, self.operations = len(repetitions), len(single)

    def figures(self, case, variant):
        """The metrics of a time by the names of the other benches, and percentiles of single operations."""
        metrics = {
            "time": self.median,
            "time_min": self.min,
            "time_max": self.max,
            "operation_p50": self.p50,
            "operation_p99": self.p99,
        }
        timed = [figure(case, variant, metric, value, "ns") for metric, value in metrics.items()]
        return [*timed, figure(case, variant, "operations", self.operations, "count")]

    def cell(self):
        spread = "once" if self.repetitions == 1 else f"{duration(self.min)}–{duration(self.max)}"
        return f"{duration(self.median)}{self.mark} ({spread})"


class Missing:
    """The reason why there is no time: timed out, failed, or wrong."""

    def __init__(self, word, reason):
        self.word, self.reason = word, reason

    def cell(self):
        return self.word


def figure(case, variant, metric, value, unit, suite="peers"):
    return {"suite": suite, "case": case, "variant": variant, "metric": metric, "value": value, "unit": unit}


def duration(nanos):
    """A time with three digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        # A value that would be rounded up to 1000 of a unit is written in the next one.
        if abs(nanos) >= 0.9995 * size:
            return f"{three_digits(nanos / size)} {unit}"
    return f"{three_digits(nanos)} ns"


def three_digits(number):
    if number == 0:
        return "0"
    # The exponent after rounding: 0.9999 is written 1.00.
    exponent = int(f"{number:.2e}".split("e")[1])
    return f"{number:.{max(0, 2 - exponent)}f}"


def times(ours, theirs):
    """The ratio of their time to ours; empty if one of them has no time."""
    if not (isinstance(ours, Timing) and isinstance(theirs, Timing)):
        return ""
    return f"{three_digits(theirs.median / ours.median)}×"


def net(timing, floor):
    """A time without the client's floor. The remainder may be noise, and is shown even if it is negative."""
    return timing.median - floor


def table(header, rows):
    """A Markdown table with aligned columns."""
    lines = [header, ["---"] * len(header), *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    lines[1] = ["-" * width for width in widths]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines)


def main_table(cases, sides, results):
    """The table of all sides with their full times. `results` is by (side, case)."""
    compare = "mangrove-prepared" in sides and "ladybug" in sides
    header = ["case", *sides] + (["ladybug ÷ prepared"] if compare else [])
    rows = []
    for case in cases:
        row = [case, *(results[side, case].cell() if (side, case) in results else "" for side in sides)]
        if compare:
            row.append(times(results.get(("mangrove-prepared", case)), results.get(("ladybug", case))))
        rows.append(row)
    return table(header, rows)


FLOOR_CASE = "a constant"


def client_floor(servers, results):
    """The floor of client and transport: the smaller time of `g.inject(1)`; None without a server."""
    floors = [results.get((server, FLOOR_CASE)) for server in servers]
    return min((timing.median for timing in floors if isinstance(timing, Timing)), default=None)


def net_table(cases, servers, results, floor):
    """The table of the servers without the client's floor."""
    rows = []
    for case in cases:
        timings = [results.get((server, case)) for server in servers]
        if case == FLOOR_CASE or not any(timings):
            continue
        cells = [duration(net(t, floor)) if isinstance(t, Timing) else t.cell() if t else "" for t in timings]
        ratio = ""
        if all(isinstance(timing, Timing) for timing in timings) and len(timings) == 2:
            ours, theirs = (net(timing, floor) for timing in timings)
            # A remainder below a twentieth of the floor is noise, and so would be a ratio of it.
            ratio = f"{three_digits(theirs / ours)}×" if min(ours, theirs) > floor / 20 else "–"
        rows.append([case, *cells, ratio])
    return table(["case, without the client's floor", *servers, "second ÷ first"], rows)
