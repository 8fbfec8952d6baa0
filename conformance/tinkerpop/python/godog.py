"""Runs the Go client's own runner of the feature files, and reads the outcome of each scenario from its log."""

import os
import pathlib
import re
import subprocess

# The filter of the Go client's runner, in addition to TinkerPop's.
LEFT_OUT = {"@GraphComputerOnly", "@StepSubgraph", "@StepTree"}

SCENARIO = re.compile(r"\s+Scenario: (\S+)\s+# (?:.*/features/)?(.*)\.feature:\d+$")
COLOR = re.compile(r"\x1b\[[0-9;]*m")
UNDEFINED = "\x1b[33m"


def run(runner, url, features, log):
    """Returns the outcome of each scenario by its key. The log lists each scenario with its steps; a yellow step has
    no function in the runner. After a headline, the failed scenarios are listed again, with their errors."""
    environment = {**os.environ, "CUCUMBER_FEATURE_FOLDER": os.path.realpath(features), "GREMLIN_SERVER_URL": url}
    with open(log, "w", encoding="utf-8") as file:
        subprocess.run([os.path.realpath(runner), "-test.run", "TestCucumberFeatures"], env=environment, stdout=file,
                       stderr=subprocess.STDOUT, check=False)
    return read(pathlib.Path(log).read_text(encoding="utf-8"))


def read(log):
    """The outcomes in a log, by the keys of scenarios: `passed`, `skipped`, or `failed: ` and the error."""
    told, key, failures = {}, None, False
    for line in log.splitlines():
        plain = COLOR.sub("", line)
        failures = failures or plain.startswith("--- Failed steps")
        found = SCENARIO.match(plain)
        if found:
            key = f"{found[2]} {found[1]}"
            told[key] = "failed: " if failures else "passed"
        elif failures and plain.lstrip().startswith("Error: "):
            told[key] = f"failed: {plain.split('Error: ', 1)[1]}"
        elif key and not failures and line.lstrip().startswith(UNDEFINED):
            told[key] = "skipped"
    return told
