#!/usr/bin/env bash
# Runs the tests of homes (run.sh) on real S3-compatible servers.
#
# Usage: all.sh [quick|all]   (quick: versitygw, which is built in a minute; all: minio too)
#
# A server that is neither installed nor in target/stores is built there with Go.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=conformance/stores/store.sh
source conformance/stores/store.sh

form=${1:-quick}
conformance/stores/run.sh "$(store_program versitygw)"
if [ "$form" = all ]; then
    conformance/stores/run.sh "$(store_program minio)"
elif program=$(command -v minio); then
    conformance/stores/run.sh "$program"
else
    echo "left out: homes on minio, which takes minutes to build (make test-full runs it)"
fi
