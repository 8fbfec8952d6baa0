"""Prints the traversals of TinkerPop's feature files, one a line, as java/Grammar.java reads them."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tinkerpop/python"))

from features import read_all  # noqa: E402: it stands beside the runner of these files.

scripts = {step.doc for scenario in read_all(sys.argv[1]) for step in scenario.steps
           if step.doc and step.text in ("the traversal of", "the graph initializer of")}
for script in sorted(scripts):
    print(script.strip().replace("\\", "\\\\").replace("\n", "\\n"))
