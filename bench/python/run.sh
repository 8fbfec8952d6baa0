#!/usr/bin/env bash
# Runs embedded.py with the wheel of this project, which is made first, beside packages from PyPI.
# Usage: run.sh [ARGUMENT]...   (see embedded.py --help)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
"$root/bindings/python/wheel.sh" >&2
python=$("$root/conformance/drivers/python/setup.sh" "$root/target/venv-beside" "$here/requirements.txt")
"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$root"/target/wheels/mangrove_graph-*.whl >&2
exec "$python" "$here/embedded.py" "$@"
