#!/usr/bin/env bash
# Measures the least time of each official client: g.inject(1), one request after the other, on one connection. A query's own
# cost is its time beyond this floor. `mangrove bench wire --only echo` measures the same with a minimal client.
# Usage: floor.sh MANGROVE [SECONDS]
set -euo pipefail
mangrove=$(realpath "${1:?usage: floor.sh MANGROVE [SECONDS]}")
seconds=${2:-5}
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
source conformance/serve.sh
configuration=$(mktemp)
printf 'data = "memory:"\n' >"$configuration"
serve "$mangrove" "$configuration" floor
rm -f "$configuration"

has() { # COMMAND CLIENT
    command -v "$1" >/dev/null && return 0
    echo "left out: $2, because $1 is missing" >&2
    return 1
}

measure() {
    "$("$here/python/setup.sh")" "$here/floor/floor.py" "$url" "$seconds"
    older=$("$here/python/setup.sh" "$PWD/target/venv-gremlinpython-3.7" "$here/python/requirements-3.7.txt")
    "$older" "$here/floor/floor.py" "$url" "$seconds"
    if has npm "the JavaScript client"; then
        modules=target/driver-javascript
        if ! [ -d "$modules/node_modules/gremlin" ]; then
            mkdir -p "$modules"
            npm install --silent --no-fund --no-audit --prefix "$modules" \
                "gremlin@$(node -p "require('$here/javascript/package.json').dependencies.gremlin")" >&2
        fi
        NODE_PATH=$modules/node_modules node "$here/floor/floor.js" "$url" "$seconds"
    fi
    address=${url#ws://}
    address=${address%%/*}
    if has mvn "the Java driver"; then
        for line in 3.7.5 3.8.1; do
            classes=target/driver-java-$line
            mkdir -p "$classes"
            [ -s "$classes/classpath" ] || mvn -q -B -f "$here/java/pom.xml" dependency:build-classpath \
                -Dtinkerpop.version=$line -Dmdep.outputFile="$PWD/$classes/classpath" >&2
            javac -nowarn -Xlint:none -d "$classes" -cp "$(cat "$classes/classpath")" "$here/floor/Floor.java"
            java -Dline=$line -cp "$classes:$(cat "$classes/classpath")" Floor "${address%:*}" "${address##*:}" "$seconds" 2>/dev/null
        done
    fi
    if has go "the Go client"; then
        (cd "$here/go" && go run ./floor "$url" "$seconds")
    fi
}

{
    printf 'client\tserializer\tp50 µs\tp99 µs\trequests/s\n'
    measure
} | column -t -s "$(printf '\t')"
kill "$server"
wait "$server"
trap - EXIT
