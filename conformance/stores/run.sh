#!/usr/bin/env bash
# Runs the contract of homes against a real S3-compatible server, which is killed and started again between two parts. Then
# servers of Mangrove take a graph in it over from one another, first while it runs, then while it is killed again and again.
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
killer=
end() {
    if [ -n "$killer" ]; then
        kill "$killer" 2>/dev/null || true
        wait "$killer" 2>/dev/null || true
    fi
    kill_server
    rm -rf "$folder"
}
trap end EXIT

# Kills the server, whose number is in a file.
kill_server() {
    local server
    if server=$(cat "$folder/server" 2>/dev/null); then
        kill -9 "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
}

# A request with a signature and without a body. Prints the status.
empty=$(printf '' | sha256sum | cut -d ' ' -f 1)
signed() { # METHOD PATH
    curl --silent --output /dev/null --write-out '%{http_code}' --max-time 5 \
        --aws-sigv4 aws:amz:us-east-1:s3 --user "$access:$secret" --header "x-amz-content-sha256: $empty" --request "$1" "$endpoint/$2" || true
}

start() {
    local server
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
    echo $server >"$folder/server"
    for _ in $(seq 300); do
        if ! kill -0 "$server" 2>/dev/null; then break; fi
        if [ "$(signed GET '')" = 200 ]; then return 0; fi
        sleep 0.1
    done
    echo "$kind did not start:" >&2
    tail -n 20 "$folder/log" >&2
    return 1
}

# As CI builds the tests, so that nothing is built again.
tests() { # PART
    echo "== $kind: $1"
    MANGROVE_S3_ENDPOINT=$endpoint MANGROVE_S3_BUCKET=$bucket MANGROVE_S3_ACCESS_KEY=$access MANGROVE_S3_SECRET_KEY=$secret \
        MANGROVE_S3_PART=$1 ${CARGO:-cargo} test --workspace --lib --quiet -- a_real_store --nocapture
}

# Servers of Mangrove, each of which is killed, stopped or paused.
kills() { # NAME ROUNDS
    echo "== $kind: servers that take a graph over from one another, $1"
    AWS_ENDPOINT_URL=$endpoint AWS_ACCESS_KEY_ID=$access AWS_SECRET_ACCESS_KEY=$secret AWS_REGION=us-east-1 \
        MANGROVE_KILL_HOME=s3://$bucket MANGROVE_KILLS=$((5 * $2)) \
        ${CARGO:-cargo} test --workspace --test kill --quiet -- servers_that --nocapture
}

start
made=$(signed PUT "$bucket")
if [ "$made" != 200 ]; then
    echo "$kind answered $made when the bucket was to be made" >&2
    exit 1
fi
tests before
kill_server
start
tests after
rounds=${MANGROVE_TEST_FULL:+10}
kills "while it runs" "${rounds:-2}0"
(while sleep 2; do kill_server && start; done) &
killer=$!
kills "while it is killed again and again" "${rounds:-2}0"
