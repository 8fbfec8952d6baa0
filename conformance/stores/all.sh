#!/usr/bin/env bash
# Runs the contract of homes (run.sh) against real S3-compatible servers.
#
# Usage: all.sh [quick|all]   (quick: versitygw, which is built in a minute; all: minio too)
#
# A server that is neither installed nor in target/stores is built there with Go.
set -euo pipefail
cd "$(dirname "$0")/../.."

form=${1:-quick}
folder=${CARGO_TARGET_DIR:-$PWD/target}/stores

# Prints the program of a server. Builds it, if it is not there.
server() { # NAME PACKAGE@VERSION
    local name=$1 package=$2
    command -v "$name" && return 0
    if ! [ -x "$folder/$name" ] && command -v go >/dev/null; then
        mkdir -p "$folder"
        echo "building $name with Go, once" >&2
        GOBIN=$folder go install "$package" >&2 || true
    fi
    # run.sh says so if there is no program.
    echo "$folder/$name"
}

conformance/stores/run.sh "$(server versitygw github.com/versity/versitygw/cmd/versitygw@v1.8.0)"
if [ "$form" = all ]; then
    conformance/stores/run.sh "$(server minio github.com/minio/minio@latest)"
elif program=$(command -v minio); then
    conformance/stores/run.sh "$program"
else
    echo "left out: the contract of homes on minio, which takes minutes to build (make test-full runs it)"
fi
