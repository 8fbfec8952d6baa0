#!/usr/bin/env bash
# The second part of `make demo`: a graph on an S3-compatible store, a server that owns it, one that stands by, a kill, and
# the standby's answer.
#
# Usage: standby.sh MANGROVE   (the program)
#
# The store is versitygw on loopback. If it is neither installed nor can be built with Go, a directory stands for the bucket.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=conformance/stores/store.sh
source conformance/stores/store.sh

mangrove=${1:?usage: standby.sh MANGROVE, the program}
folder=$(mktemp -d)
owner= standby= server=
end() {
    for process in $owner $standby; do kill -9 "$process" 2>/dev/null || true; done
    store_kill
    rm -rf "$folder"
}
trap end EXIT

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
now() { date +%s%N; }
since() { echo "$((($(now) - $1) / 1000000)) ms"; }
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# A traversal, and its only result.
ask() { # PORT GREMLIN
    "$mangrove" query --url "ws://127.0.0.1:$1/gremlin" --format csv "$2" 2>/dev/null | tail -n 1
}
serving() { # PORT LOG
    for _ in $(seq 300); do
        if "$mangrove" health --url "ws://127.0.0.1:$1/gremlin" >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    cat "$2" >&2
    return 1
}

program=$(store_program versitygw)
if [ -x "$program" ]; then
    store_begin "$program" "$folder"
    store_bucket graphs
    address=s3://graphs/social
    say "A graph in object storage: $address on versitygw, at $endpoint"
else
    address=file:$folder/social
    say "A graph in object storage: left out, because versitygw cannot be built (install Go); a directory stands for the bucket"
fi
"$mangrove" generate social --scale-factor 0.03 --data "$address" 2>&1 | grep ' vertices and edges'

# Starts a server; returns when it serves. Its process is in $server.
serve() { # PORT OPTION
    "$mangrove" serve "$2" "$address" --listen "127.0.0.1:$1" >"$folder/$1.log" 2>&1 &
    server=$!
    # So that the shell does not report the kill.
    disown $server
    serving "$1" "$folder/$1.log"
}

first=$(port) second=$(port)
begun=$(now)
serve "$first" --data
owner=$server
say "Its owner serves after $(since "$begun"): mangrove serve --data $address"
begun=$(now)
serve "$second" --follow
standby=$server
say "A standby follows it after $(since "$begun"): mangrove serve --follow $address"

for number in $(seq 20); do ask "$first" "g.addV('visit').property('number', $number).count()" >/dev/null; done
acknowledged=20
printf 'the owner has acknowledged %s visits' $acknowledged
for _ in $(seq 100); do
    seen=$(ask "$second" "g.V().hasLabel('visit').count()")
    if [ "$seen" = $acknowledged ]; then break; fi
    sleep 0.02
done
echo ", and the standby shows $seen"
echo "asked to write, it says: $("$mangrove" query --url "ws://127.0.0.1:$second/gremlin" "g.addV('visit')" 2>&1 | tail -n 1)"

say "kill -9 of the owner"
begun=$(now)
kill -9 $owner
owner=
"$mangrove" promote --url "ws://127.0.0.1:$second/gremlin" >/dev/null
echo "the standby is the owner after $(since "$begun"): mangrove promote --url …"
seen=$(ask "$second" "g.V().hasLabel('visit').count()")
echo "it has $seen of $acknowledged acknowledged visits, $(since "$begun") after the kill"
ask "$second" "g.addV('visit').count()" >/dev/null
echo "it has acknowledged a visit of its own $(since "$begun") after the kill"
if [ "$seen" != $acknowledged ]; then
    echo "error: an acknowledged commit is missing" >&2
    exit 1
fi
