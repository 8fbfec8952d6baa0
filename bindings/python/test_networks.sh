#!/usr/bin/env bash
# The tests of `mangrove.pyg` and its notebook, with a native module that cargo has built, and PyTorch and PyTorch Geometric from PyPI (540
# MB). They run in a virtual environment below target/. If the packages cannot be fetched, the tests are left out with a line.
# Usage: test_networks.sh NATIVE-MODULE
set -euo pipefail
module=$(realpath "${1:?usage: test_networks.sh NATIVE-MODULE}")
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
if ! python=$("$root/conformance/drivers/python/setup.sh" "$root/target/venv-networks" "$here/tests/requirements-networks.txt") ||
    ! "$python" -m pip install --quiet --disable-pip-version-check --no-deps 'torch>=2.6,<3' 'torch_geometric>=2.6,<3'; then
    echo "left out: the tests of graph neural networks, because their packages could not be fetched (see above); check the access to PyPI"
    exit 0
fi
"$python" "$here/tests/torch_without_cuda.py"
"$here/place_package.sh" "$python" "$module"
cd "$here"
exec "$python" -m pytest -q -p no:cacheprovider tests/test_pyg.py tests/test_notebooks.py -k "test_pyg or 5_graph"
