#!/bin/sh
# Makes the virtual environment of the Python driver's checks, once: a second run finds it and does nothing.
# Usage: setup.sh [DIRECTORY]   (default: target/venv-gremlinpython in the project); prints its Python.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=${1:-$here/../../../target/venv-gremlinpython}
stamp=$venv/requirements.txt
if ! cmp -s "$here/requirements.txt" "$stamp"; then
    python3 -m venv --clear "$venv" >&2
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
    cp "$here/requirements.txt" "$stamp"
fi
echo "$venv/bin/python"
