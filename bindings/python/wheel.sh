#!/usr/bin/env bash
# Makes the wheel of the Python package, target/wheels/mangrove_graph-….whl, for CPython 3.9 and later. maturin comes from PyPI, into a
# virtual environment below target/.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
python=$("$root/conformance/drivers/python/setup.sh" "$root/target/venv-maturin" "$here/requirements-build.txt")
cd "$here"
"$(dirname "$python")/maturin" build --release --locked --out "$root/target/wheels" "$@"
