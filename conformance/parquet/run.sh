#!/usr/bin/env bash
# Parquet files that Arrow writes are loaded, and what is exported is read by Arrow and by DuckDB: the same values.
# Both are downloaded once, below target/; without a network the checks are left out, and a line says so.
# Usage: run.sh MANGROVE
set -euo pipefail
mangrove=$(realpath "${1:?usage: run.sh MANGROVE}")
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
if ! python=$(conformance/drivers/python/setup.sh "$PWD/target/venv-parquet" "$here/requirements.txt"); then
    echo "left out: Parquet by other readers, because their packages could not be fetched (see above); is there a network?"
    exit 0
fi
exec "$python" "$here/check.py" "$mangrove"
