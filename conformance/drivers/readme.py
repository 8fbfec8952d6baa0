"""Runs the Python example of the README, as it stands there, against a server.

Usage: readme.py WS_URL
"""

import contextlib
import io
import pathlib
import re
import sys

DEFAULT_URL = "ws://127.0.0.1:8182/gremlin"


def main():
    readme = pathlib.Path(__file__).resolve().parents[2] / "README.md"
    (example,) = re.findall(r"^```python\n(.*?)^```", readme.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if DEFAULT_URL not in example:
        sys.exit(f"the example of the README does not connect to {DEFAULT_URL}")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example.replace(DEFAULT_URL, sys.argv[1]), "README.md", "exec"), {})
    # What a comment behind a print says it prints.
    promised = re.findall(r"print\(.*\)\s+# (.*)", example)
    passed = printed.getvalue().splitlines() == promised
    if not passed:
        print(f"the README promises {promised}, and its example printed {printed.getvalue()!r}")
    print("the README's example: " + ("1 passed, 0 failed" if passed else "0 passed, 1 failed"))
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
