"""Reads TinkerPop's feature files: the part of Gherkin that they use (no backgrounds, no outlines).

A scenario has a name, its tags and those of its feature, and steps. A step is its text without the keyword, with the
doc string or the table after it.
"""

import dataclasses
import pathlib
import re

KEYWORDS = ("Given ", "When ", "Then ", "And ", "But ")


@dataclasses.dataclass
class Step:
    """One step of a scenario, with its doc string or table."""
    text: str
    doc: str | None = None
    table: list | None = None


@dataclasses.dataclass
class Scenario:
    """A scenario and the name of its feature."""
    feature: str
    name: str
    tags: frozenset
    steps: list

    @property
    def key(self):
        """The key in lists: names alone are not unique."""
        return f"{self.feature} {self.name}"


def read_all(folder):
    """All scenarios below a folder, in the order of file names."""
    folder = pathlib.Path(folder)
    files = sorted(folder.rglob("*.feature"))
    return [s for f in files for s in read(f.read_text(encoding="utf-8"), f.relative_to(folder).with_suffix(""))]


def read(text, feature):
    """The scenarios of one file."""
    scenarios, own_tags, pending = [], [], []
    doc = None
    for line in text.splitlines():
        stripped = line.strip()
        if doc is not None:
            if stripped == '"""':
                margin, lines = doc
                scenarios[-1].steps[-1].doc = "\n".join(l[margin:] if not l[:margin].strip() else l for l in lines)
                doc = None
            else:
                doc[1].append(line)
        elif stripped == '"""':
            doc = (len(line) - len(line.lstrip()), [])
        elif stripped.startswith("@"):
            pending += stripped.split()
        elif stripped.startswith("Feature:"):
            own_tags, pending = pending, []
        elif stripped.startswith("Scenario:"):
            name = stripped.removeprefix("Scenario:").strip()
            scenarios.append(Scenario(str(feature), name, frozenset(own_tags + pending), []))
            pending = []
        elif stripped.startswith("|"):
            step = scenarios[-1].steps[-1]
            step.table = (step.table or []) + [cells(stripped)]
        elif stripped.startswith(KEYWORDS) and scenarios:
            scenarios[-1].steps.append(Step(stripped.split(" ", 1)[1].strip()))
    return scenarios


def cells(line):
    """The cells of a table row. A bar or a backslash in a cell is escaped by a backslash."""
    parts = re.split(r"(?<!\\)\|", line)[1:-1]
    return [re.sub(r"\\([|\\])", r"\1", part.strip()) for part in parts]
