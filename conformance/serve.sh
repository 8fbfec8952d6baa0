# To be sourced: starts a server for checks. The server ends with the script that sourced this.

# Sets `server` to the process, `url` to the address and `log` to the log file, target/NAME.log. The output is in
# target/NAME.out.
serve() { # MANGROVE CONFIGURATION NAME
    local said=target/$3.out
    log=target/$3.log
    # Emptied here: the process that starts may be slow to do it, and an earlier server's address would be read.
    : >"$said"
    "$1" serve --listen 127.0.0.1:0 --config "$2" >"$said" 2>"$log" &
    server=$!
    trap 'kill "$server" 2>/dev/null || true' EXIT
    url=
    for _ in $(seq 100); do
        url=$(sed -n 's/.*listens on \(.*\)/\1/p' "$said")
        [ -n "$url" ] && return 0
        if ! kill -0 "$server" 2>/dev/null; then break; fi
        sleep 0.1
    done
    echo "the server did not start:" >&2
    cat "$log" >&2
    return 1
}
