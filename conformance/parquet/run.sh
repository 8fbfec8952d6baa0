#!/usr/bin/env bash
# Checks that Mangrove loads Parquet files of Arrow, and that Arrow, DuckDB and pandas read the same values from its exports.
# They are downloaded once, to target/. If they cannot be fetched, the checks are left out with a line.
# Usage: run.sh MANGROVE
set -euo pipefail
mangrove=$(realpath "${1:?usage: run.sh MANGROVE}")
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
if ! python=$(conformance/drivers/python/setup.sh "$PWD/target/venv-parquet" "$here/requirements.txt"); then
    echo "left out: Parquet by other readers, because their packages could not be fetched (see above); check the access to PyPI"
    exit 0
fi
exec "$python" "$here/check.py" "$mangrove"
