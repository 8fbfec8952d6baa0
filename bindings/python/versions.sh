#!/usr/bin/env bash
# Installs a wheel in a fresh virtual environment of every CPython from 3.9 to 3.13 that is found, and runs there the README's first lines,
# the tests that need no other package, and the notebooks that need no PyTorch. Versions are found by their names (python3.9, …) and in pyenv's folder.
# Usage: versions.sh WHEEL
set -uo pipefail
wheel=$(realpath "${1:?usage: versions.sh WHEEL}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
for version in 3.9 3.10 3.11 3.12 3.13; do
    python=
    for candidate in "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python3 "$(command -v "python$version")"; do
        if [ -x "$candidate" ]; then
            python=$candidate
            break
        fi
    done
    if [ -z "$python" ]; then
        echo "left out: CPython $version, which is not installed"
        continue
    fi
    "$python" -m venv "$work/$version"
    installed=$work/$version/bin/python
    if "$installed" -m pip install --quiet --disable-pip-version-check "$wheel" -r "$here/tests/requirements-notebooks.txt" &&
        (cd "$work" && "$installed" -m doctest -o ELLIPSIS "$here/README.md") &&
        (cd "$here" && "$installed" -m pytest -q -p no:cacheprovider tests/test_values.py tests/test_database.py tests/test_process.py tests/test_aio.py \
            tests/test_notebooks.py); then
        echo "$("$installed" --version): the wheel works"
        passed=$((passed + 1))
    else
        echo "$("$installed" --version): FAILED"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
