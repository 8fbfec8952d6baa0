#!/usr/bin/env bash
# Compares the queries whose answers come from SQL with DuckDB, which is downloaded once, to target/. If it cannot be
# fetched, or the data sets are missing, the checks are left out with a line.
# Usage: run.sh MANGROVE-QUERIES [all]   (all: scale factor 0.1, too)
set -euo pipefail
queries=$(realpath "${1:?usage: run.sh MANGROVE-QUERIES [all]}")
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
if ! python=$(conformance/drivers/python/setup.sh "$PWD/target/venv-duckdb" "$here/duckdb/requirements.txt"); then
    echo "left out: LDBC's analytical reads beside DuckDB, because it could not be fetched (see above); check the access to PyPI"
    exit 0
fi
"$queries" ldbc-bi --python "$python" --small --runs 1
if [ "${2:-}" = all ]; then
    "$queries" ldbc-bi --python "$python" --runs 1
fi
