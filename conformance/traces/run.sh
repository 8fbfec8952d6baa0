#!/usr/bin/env bash
# Usage: run.sh MANGROVE   (built with the feature otel)
set -euo pipefail
mangrove=$(realpath "${1:?usage: run.sh MANGROVE}")
here=$(cd "$(dirname "$0")" && pwd)
if ! python=$("$here/../drivers/python/setup.sh" "$here/../../target/venv-traces" "$here/requirements.txt"); then
    echo "left out: traces, because OpenTelemetry's protocol cannot be fetched from PyPI"
    exit 0
fi
exec "$python" "$here/check.py" "$mangrove"
