"""The lists of scenarios that do not pass, and the verdict on a run.

Each TinkerPop version has a list. An entry is `feature scenario -- reason`. If it holds only for some combinations of
form and serializer, it begins with them in brackets: `[bytecode]`, `[text graphson3, go]`. A scenario without an entry
must pass. If a scenario with an entry passes, the entry must be removed, so that the scenario is checked from then on.
"""

import dataclasses
import pathlib
import re

FORMS = ("text", "bytecode", "go")
SERIALIZERS = ("graphbinary", "graphson3")
# The Go client has one serializer.
ALL = frozenset((form, serializer) for form in FORMS for serializer in SERIALIZERS if (form, serializer) != ("go", "graphson3"))
FOLDER = pathlib.Path(__file__).resolve().parents[1]


@dataclasses.dataclass
class Entry:
    """A scenario that does not pass in these combinations."""
    combinations: frozenset
    key: str
    reason: str

    def line(self):
        """The line of the entry in its file."""
        words = "" if self.combinations == ALL else f"[{', '.join(words_of(self.combinations))}] "
        return f"{words}{self.key} -- {self.reason}"


class Exceptions:
    """The list of a TinkerPop version (`line`, such as 3.8.1), for one combination of form and serializer."""

    def __init__(self, line, form, serializer):
        self.path = FOLDER / ("exceptions.txt" if line == "3.8.1" else f"exceptions-{line}.txt")
        self.combination = (form, serializer)
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        self.head = [line for line in lines if line.startswith("#")]
        self.entries = [entry(line) for line in lines if line and not line.startswith("#")]

    def mine(self):
        """The entries that hold for this combination, by key."""
        return {each.key: each for each in self.entries if self.combination in each.combinations}

    def record(self, outcomes):
        """Writes the list again, with these outcomes by key. Existing reasons stay, and so do entries of
        scenarios that did not run. If a scenario fails as text with GraphBinary, it counts as failing in all
        combinations. If it passes there, an entry for all combinations is removed. Another run may show otherwise for
        other combinations."""
        first = self.combination == ("text", "graphbinary")
        here = ALL if first else frozenset([self.combination])
        kept = {(each.key, each.reason): each for each in self.entries}
        for key, told in outcomes.items():
            own = [each for each in self.entries if each.key == key]
            if not told.startswith("failed"):
                for each in own:
                    each.combinations -= here if each.combinations == ALL else {self.combination}
            elif not any(self.combination in each.combinations for each in own):
                reason = own[0].reason if own else " ".join(told.removeprefix("failed: ").split())[:160]
                each = kept.setdefault((key, reason), Entry(frozenset(), key, reason))
                each.combinations |= here
        lines = sorted((each for each in kept.values() if each.combinations), key=lambda each: (each.key, each.reason))
        self.path.write_text("\n".join([*self.head, *(each.line() for each in lines)]) + "\n", encoding="utf-8")

    def judge(self, outcomes):
        """Prints deviations from the list, and sums. Returns the number of deviations."""
        mine = self.mine()
        failed = {key: told.removeprefix("failed: ") for key, told in outcomes.items() if told.startswith("failed")}
        broken = sorted(failed.keys() - mine.keys())
        for key in broken:
            print(f"failed: {key} -- {failed[key]}")
        mended = sorted(key for key in mine if outcomes.get(key) == "passed")
        for key in mended:
            print(f"passes now; remove it from {self.path.name}: {key}")
        passed = sum(told == "passed" for told in outcomes.values())
        print(f"feature files: {passed} as expected, {len(failed) - len(broken)} known exceptions, "
              f"{sum(told == 'skipped' for told in outcomes.values())} marked as unsupported by their files")
        wrong = len(broken) + len(mended)
        print(f"{passed - len(mended)} passed, {wrong} failed")
        return wrong


def words_of(combinations):
    """The shortest list of words for these combinations."""
    left, words = set(combinations), []
    named = [(form, None) for form in FORMS] + [(None, serializer) for serializer in SERIALIZERS] + sorted(ALL)
    for form, serializer in named:
        all_of_it = covered(form, serializer)
        if all_of_it <= combinations and all_of_it & left:
            words.append(" ".join(word for word in (form, serializer) if word))
            left -= all_of_it
    return words


def covered(form, serializer):
    """The combinations of this form (None means any) with this serializer (None means any)."""
    return {each for each in ALL if each[0] == (form or each[0]) and each[1] == (serializer or each[1])}


def entry(line):
    """Parses an entry."""
    found = re.fullmatch(r"(?:\[([a-z0-9, ]+)\] )?(\S+ \S+)(?: -- (.*))?", line)
    if not found:
        raise SystemExit(f"this line is no entry of a list of exceptions: {line}")
    combinations = ALL if not found[1] else frozenset()
    for words in (found[1] or "").split(", ") if found[1] else []:
        forms = [word for word in words.split() if word in FORMS]
        serializers = [word for word in words.split() if word in SERIALIZERS]
        if len(forms) + len(serializers) != len(words.split()) or max(len(forms), len(serializers)) > 1:
            raise SystemExit(f"`{words}` is no combination of form and serializer, in the line: {line}")
        combinations |= covered(*(forms or [None]), *(serializers or [None]))
    return Entry(combinations, found[2], found[3] or "")
