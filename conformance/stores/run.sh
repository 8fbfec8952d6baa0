#!/usr/bin/env bash
# Runs the contract of homes against a real S3-compatible server, which is killed and started again between two parts. Then
# servers of Mangrove take a graph in it over from one another, first while it runs, then while it is killed again and again.
#
# Usage: run.sh SERVER   (the program of versitygw or minio)
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=conformance/stores/store.sh
source conformance/stores/store.sh

program=${1:?usage: run.sh SERVER, the program of versitygw or minio}
if ! [ -x "$program" ]; then
    echo "left out: homes on a real store, because there is no program $program (conformance/stores/all.sh builds it with Go)"
    exit 0
fi
bucket=contract
folder=$(mktemp -d)
killer=
end() {
    if [ -n "$killer" ]; then
        kill "$killer" 2>/dev/null || true
        wait "$killer" 2>/dev/null || true
    fi
    store_kill
    rm -rf "$folder"
}
trap end EXIT
store_begin "$program" "$folder"
store_bucket "$bucket"

# As CI builds the tests, so that nothing is built again.
tests() { # PART
    echo "== $store_kind: $1"
    MANGROVE_S3_ENDPOINT=$endpoint MANGROVE_S3_BUCKET=$bucket MANGROVE_S3_ACCESS_KEY=$AWS_ACCESS_KEY_ID \
        MANGROVE_S3_SECRET_KEY=$AWS_SECRET_ACCESS_KEY MANGROVE_S3_PART=$1 \
        ${CARGO:-cargo} test --workspace --lib -- a_real_store --nocapture
}

# Servers of Mangrove, each of which is killed, stopped or paused.
kills() { # NAME ROUNDS
    echo "== $store_kind: servers that take a graph over from one another, $1"
    MANGROVE_KILL_HOME=s3://$bucket MANGROVE_KILLS=$((5 * $2)) \
        ${CARGO:-cargo} test --workspace --test kill -- servers_that --nocapture
}

tests before
store_kill
store_start
tests after
rounds=20
if [ -n "${MANGROVE_TEST_FULL:-}" ]; then rounds=200; fi
kills "while it runs" $rounds
(while sleep 2; do store_kill && store_start; done) &
killer=$!
kills "while it is killed again and again" $rounds
