#!/usr/bin/env bash
# Starts a server, runs the official drivers' checks against it, and stops it. The server must end with 0 on SIGTERM.
# Usage: run.sh MANGROVE   (the program)
set -euo pipefail
mangrove=$(realpath "${1:?usage: run.sh MANGROVE}")
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

archive=../shared/data/tinkerpop.tar.gz
data=target/testdata/tinkerpop
if ! [ -d "$data" ]; then
    if ! [ -f "$archive" ]; then
        echo "left out: the official Python client, because $archive is not beside this checkout"
        exit 0
    fi
    mkdir -p target/testdata
    # Into place in one step: a test may be unpacking it, too.
    own=$(mktemp -d target/testdata/.unpacking-XXXXXX)
    tar -xzf "$archive" -C "$own"
    mv -T "$own/tinkerpop" "$data" || [ -d "$data" ]
    rm -rf "$own"
fi
python=$("$here/python/setup.sh")

log=target/conformance-server.log
said=target/conformance-server.out
"$mangrove" serve --listen 127.0.0.1:0 --config "$here/server.toml" >"$said" 2>"$log" &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
url=
for _ in $(seq 100); do
    url=$(sed -n 's/.*listens on \(.*\)/\1/p' "$said")
    [ -n "$url" ] && break
    if ! kill -0 "$server" 2>/dev/null; then break; fi
    sleep 0.1
done
if [ -z "$url" ]; then
    echo "the server did not start:" >&2
    cat "$log" >&2
    exit 1
fi

failed=0
"$python" "$here/python/run.py" --url "$url" --memory-limited || failed=1
"$python" "$here/readme.py" "$url" || failed=1
"$python" "$here/python/security.py" "$mangrove" || failed=1
kill "$server"
if ! wait "$server"; then
    echo "the server did not end with 0 on SIGTERM:" >&2
    tail -n 20 "$log" >&2
    failed=1
fi
trap - EXIT
exit "$failed"
