#!/usr/bin/env bash
# The tests of `mangrove.dgl`, with a native module that cargo has built, and DGL and the PyTorch that it works with from PyPI (760 MB). They
# run in a virtual environment below target/. DGL on PyPI is for CPython up to 3.11. If it cannot be had, the tests are left out with a line.
# Usage: test_dgl.sh NATIVE-MODULE
set -euo pipefail
module=$(realpath "${1:?usage: test_dgl.sh NATIVE-MODULE}")
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
if ! python=$("$root/conformance/drivers/python/setup.sh" "$root/target/venv-dgl" "$here/tests/requirements-dgl.txt") ||
    ! "$python" -m pip install --quiet --disable-pip-version-check --no-deps torch==2.2.1 torchdata==0.7.1 dgl==2.1.0; then
    echo "left out: the tests of DGL, because it could not be installed (see above): it needs CPython 3.11 or earlier, and access to PyPI"
    exit 0
fi
"$python" "$here/tests/torch_without_cuda.py"
"$here/place_package.sh" "$python" "$module"
cd "$here"
exec "$python" -m pytest -q -p no:cacheprovider tests/test_dgl.py
