"""Records the `expected` answers of traversals.json from a trusted server, the reference.

Both notations must give the same answer; otherwise nothing is written.
"""

import argparse
import json
import sys

from canonical import answer
from cases import DATA, Server, load


def compact(value):
    """Serializes to JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def document(header, cases):
    """The text of the data file, with one field a line, so that a diff shows what changed."""
    lines = ["{", '  "header": ' + json.dumps(header, indent=2, ensure_ascii=False).replace("\n", "\n  ") + ",",
             '  "traversals": [']
    entries = []
    for case in cases:
        fields = [f"      {compact(key)}: {compact(value)}" for key, value in vars(case).items()]
        entries.append("    {\n" + ",\n".join(fields) + "\n    }")
    return "\n".join(lines) + "\n" + ",\n".join(entries) + "\n  ]\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="the reference, as ws://HOST:PORT/gremlin")
    url = parser.parse_args().url
    header, cases = load()
    server = Server(url)
    differing = 0
    for case in cases:
        from_bytecode = answer(server.run_bytecode(case), case.ordered)
        from_script = answer(server.run_script(case), case.ordered)
        if from_bytecode != from_script:
            differing += 1
            print(f"{case.name}:\n  bytecode {compact(from_bytecode)}\n  script   {compact(from_script)}", file=sys.stderr)
        case.expected = from_bytecode
    server.close()
    if differing:
        sys.exit(f"{differing} traversals answer differently as bytecode and as a script; nothing was written")
    DATA.write_text(document(header, cases))
    print(f"{len(cases)} answers written to {DATA.name}")


if __name__ == "__main__":
    main()
