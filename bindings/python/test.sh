#!/usr/bin/env bash
# The tests of the Python package, with a native module that cargo has built. They run in a virtual environment below target/, with
# packages from PyPI. If these cannot be fetched, the tests are left out with a line.
# Usage: test.sh NATIVE-MODULE [ARGUMENT-OF-PYTEST]...
set -euo pipefail
module=$(realpath "${1:?usage: test.sh NATIVE-MODULE [ARGUMENT-OF-PYTEST]...}")
shift
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
if ! python=$("$root/conformance/drivers/python/setup.sh" "$root/target/venv-python" "$here/tests/requirements.txt"); then
    echo "left out: the tests of the Python package, because their packages could not be fetched (see above); check the access to PyPI"
    exit 0
fi
"$here/place_package.sh" "$python" "$module"
cd "$here"
run() {
    "$python" -m pytest -q -p no:cacheprovider "$@"
}
if (($#)); then
    run "$@"
    exit
fi
outcome=0
run --ignore=tests/test_leaks.py || outcome=1
# In a process of their own: what other tests leave in theirs is no leak.
run tests/test_leaks.py || outcome=1
exit "$outcome"
