#!/usr/bin/env bash
# Runs the contract of homes against a real S3-compatible server, which is killed and started again between two parts.
#
# Usage: run.sh SERVER   (the program of versitygw or minio)
#
#   go install github.com/versity/versitygw/cmd/versitygw@latest
#   go install github.com/minio/minio@latest
set -euo pipefail
cd "$(dirname "$0")/../.."

program=${1:?usage: run.sh SERVER, the program of versitygw or minio}
if ! [ -x "$program" ]; then
    echo "left out: the contract of homes on a real store, because there is no program $program (see the head of $0)"
    exit 0
fi
kind=$(basename "$program")
access=mangrove-test
secret=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
endpoint=http://127.0.0.1:$port
bucket=contract
folder=$(mktemp -d)
mkdir "$folder/data"
server=
trap 'if [ -n "$server" ]; then kill -9 "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi; rm -rf "$folder"' EXIT

# A request with a signature and without a body. Prints the status.
empty=$(printf '' | sha256sum | cut -d ' ' -f 1)
signed() { # METHOD PATH
    curl --silent --output /dev/null --write-out '%{http_code}' --max-time 5 \
        --aws-sigv4 aws:amz:us-east-1:s3 --user "$access:$secret" --header "x-amz-content-sha256: $empty" --request "$1" "$endpoint/$2" || true
}

start() {
    case $kind in
    versitygw*)
        ROOT_ACCESS_KEY=$access ROOT_SECRET_KEY=$secret \
            "$program" --port "127.0.0.1:$port" posix "$folder/data" >>"$folder/log" 2>&1 &
        ;;
    minio*)
        MINIO_ROOT_USER=$access MINIO_ROOT_PASSWORD=$secret \
            "$program" server --address "127.0.0.1:$port" "$folder/data" >>"$folder/log" 2>&1 &
        ;;
    *)
        echo "$program is neither versitygw nor minio, and the script knows how to start only these" >&2
        exit 2
        ;;
    esac
    server=$!
    for _ in $(seq 300); do
        if ! kill -0 "$server" 2>/dev/null; then break; fi
        if [ "$(signed GET '')" = 200 ]; then return 0; fi
        sleep 0.1
    done
    echo "$kind did not start:" >&2
    tail -n 20 "$folder/log" >&2
    return 1
}

tests() { # PART
    echo "== $kind: $1"
    MANGROVE_S3_ENDPOINT=$endpoint MANGROVE_S3_BUCKET=$bucket MANGROVE_S3_ACCESS_KEY=$access MANGROVE_S3_SECRET_KEY=$secret \
        MANGROVE_S3_PART=$1 ${CARGO:-cargo} test -p mangrove-durable --features s3 --lib -- a_real_store --nocapture
}

start
made=$(signed PUT "$bucket")
if [ "$made" != 200 ]; then
    echo "$kind answered $made when the bucket was to be made" >&2
    exit 1
fi
tests before
kill -9 "$server"
wait "$server" 2>/dev/null || true
start
tests after
