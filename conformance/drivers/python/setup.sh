#!/bin/sh
# Makes a virtual environment for the Python checks, once: a second run finds it and does nothing.
# Usage: setup.sh [DIRECTORY [REQUIREMENTS [PIP-OPTION…]]]   (default: target/venv-gremlinpython in the project,
# requirements.txt); prints its Python.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=${1:-$here/../../../target/venv-gremlinpython}
requirements=${2:-$here/requirements.txt}
[ $# -lt 2 ] || shift 2
stamp=$venv/requirements.txt
if ! cmp -s "$requirements" "$stamp"; then
    python3 -m venv --clear "$venv" >&2
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$@" -r "$requirements" >&2
    cp "$requirements" "$stamp"
fi
echo "$venv/bin/python"
