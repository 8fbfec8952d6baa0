#!/usr/bin/env bash
# Makes the archive of a program, unpacks and installs it to a folder, starts the server like the service, runs a query, and ends
# the server. If systemd-analyze is installed, it checks the unit.
# Usage: test.sh PROGRAM
set -euo pipefail
program=$(realpath "${1:?usage: test.sh PROGRAM}")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
server=
trap 'if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi; rm -rf "$folder"' EXIT
passed=0
failed=0
check() { # NAME COMMAND...
    if "${@:2}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED packaging: $1"
    fi
}
has() { # TEXT FILE
    grep -q -- "$1" "$2"
}

no_symbols() { # PROGRAM
    ! readelf --sections --wide "$1" | grep -qE '\.(symtab|debug_info|debug_line)'
}

packaging/dist.sh "$program"
archive=$(ls -t target/dist/*.tar.gz | head -n 1)
tar -xzf "$archive" -C "$folder"
unpacked=$(echo "$folder"/mangrove-*-linux)
for file in README.md LICENSE BUILD docs/operations.md mangrove.service monitoring/grafana-dashboard.json; do
    check "the archive has $file" test -s "$unpacked/$file"
done
check "symbols are beside the archive" test -s "${archive%.tar.gz}.debug"
check "the program says where its symbols are" has "$(basename "${archive%.tar.gz}").debug" "$unpacked/bin/mangrove"
check "the program has no symbols itself" no_symbols "$unpacked/bin/mangrove"
root=$folder/root
DESTDIR=$root "$unpacked/install.sh" >"$folder/installed"
mangrove=$root/usr/local/bin/mangrove
check "the manual page names the commands" has "MANGROVE SERVE" "$root/usr/local/share/man/man1/mangrove.1"
check "bash completes settings" has "--memory-limit" "$root/usr/local/share/bash-completion/completions/mangrove"
# A configuration that an administrator changed is not overwritten.
echo "# changed" >>"$root/etc/mangrove/mangrove.toml"
DESTDIR=$root "$unpacked/install.sh" >"$folder/installed"
check "an existing configuration is kept" has "# changed" "$root/etc/mangrove/mangrove.toml"

if command -v systemd-analyze >/dev/null; then
    # systemd-analyze checks that the program of the unit exists.
    sed "s|/usr/local/bin/mangrove|$mangrove|" "$root/etc/systemd/system/mangrove.service" >"$folder/mangrove.service"
    check "systemd accepts the unit" systemd-analyze verify --man=no "$folder/mangrove.service"
else
    echo "left out: the check of the systemd unit, because systemd-analyze is missing"
fi

# Starts the server like the service, with other directories. It must notify the service manager when it is ready.
export MANGROVE_DATA=$folder/state/main MANGROVE_GRAPHS_DIR=$folder/state/graphs MANGROVE_AUDIT=$folder/audit.log
mkdir -p "$folder/state"
python3 - "$folder/notify" >"$folder/notified" <<'END' &
import socket, sys
heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
heard.bind(sys.argv[1])
heard.settimeout(60)
for _ in range(2):
    print(heard.recv(4096).decode(), flush=True)
END
listener=$!
for _ in $(seq 100); do [ -S "$folder/notify" ] && break || sleep 0.1; done
NOTIFY_SOCKET=$folder/notify "$mangrove" serve --config "$root/etc/mangrove/mangrove.toml" --listen 127.0.0.1:0 \
    >"$folder/out" 2>"$folder/log" &
server=$!
for _ in $(seq 300); do has READY=1 "$folder/notified" && break || sleep 0.1; done
check "it tells the service manager that it is ready" has READY=1 "$folder/notified"
url=$(sed -n 's/.*listens on \(.*\)/\1/p' "$folder/out")
check "it is healthy" "$mangrove" health --url "$url"
check "it answers" test "$("$mangrove" query --url "$url" --format csv 'g.addV("packed").label()' | tail -n 1)" = packed
# Runs `mangrove health` like the HEALTHCHECK of the image, with settings only: TLS is on, with a self-signed certificate.
if command -v openssl >/dev/null; then
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=graph -addext subjectAltName=DNS:graph \
        -keyout "$folder/tls.key" -out "$folder/tls.pem" 2>/dev/null
    export MANGROVE_TLS_CERTIFICATE=$folder/tls.pem MANGROVE_TLS_KEY=$folder/tls.key MANGROVE_LISTEN=127.0.0.1:0
    MANGROVE_DATA=memory: MANGROVE_GRAPHS_DIR=$folder/tls.graphs MANGROVE_AUDIT=$folder/tls.audit "$mangrove" serve >"$folder/tls.out" 2>"$folder/tls.log" &
    encrypted=$!
    for _ in $(seq 100); do has "listens on" "$folder/tls.out" && break || sleep 0.1; done
    MANGROVE_LISTEN=$(sed -n 's|.*listens on wss://\([^/]*\)/.*|\1|p' "$folder/tls.out")
    check "it is healthy with TLS, too" "$mangrove" health
    kill -TERM "$encrypted"
    wait "$encrypted" || true
else
    echo "left out: the check of health with TLS, because openssl is missing"
fi
kill -HUP "$server"
kill -TERM "$server"
code=0
wait "$server" || code=$?
server=
check "SIGTERM ends it with 0" test "$code" = 0
check "it tells the service manager that it stops" has STOPPING=1 "$folder/notified"
kill "$listener" 2>/dev/null || true
echo "packaging: $passed passed, $failed failed"
[ "$failed" = 0 ]
