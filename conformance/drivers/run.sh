#!/usr/bin/env bash
# Starts a server, runs the official drivers' checks against it, and stops it. The server must end with 0 on SIGTERM.
# Usage: run.sh MANGROVE [all]   (the program; `all` for every client, line and serializer, else the quick ones)
set -euo pipefail
mangrove=$(realpath "${1:?usage: run.sh MANGROVE [all]}")
which=${2:-quick}
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
source conformance/serve.sh

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

serve "$mangrove" "$here/server.toml" conformance-server

failed=0
"$python" "$here/python/run.py" --url "$url" --memory-limited --serializer graphbinary --serializer graphson3 || failed=1
"$python" "$here/readme.py" "$url" || failed=1
"$python" "$here/python/security.py" "$mangrove" || failed=1
traversals=$here/python/traversals.json

# A client whose toolchain is not here is left out with a word.
has() { # COMMAND CLIENT
    command -v "$1" >/dev/null && return 0
    echo "left out: the official $2 client, because there is no $1"
    return 1
}

if has npm JavaScript; then
    node_modules=target/driver-javascript
    if ! cmp -s "$here/javascript/package.json" "$node_modules/package.json"; then
        mkdir -p "$node_modules"
        cp "$here/javascript/package.json" "$node_modules/package.json.new"
        npm install --silent --no-fund --no-audit --prefix "$node_modules" \
            "gremlin@$(node -p "require('$here/javascript/package.json').dependencies.gremlin")" >&2
        mv "$node_modules/package.json.new" "$node_modules/package.json"
    fi
    NODE_PATH=$node_modules/node_modules node "$here/javascript/run.js" "$url" || failed=1
fi

if [ "$which" = all ]; then
    "$python" "$here/python/run.py" --url "$url" --only-language --serializer graphson2 || failed=1
    older=$("$here/python/setup.sh" "$PWD/target/venv-gremlinpython-3.7" "$here/python/requirements-3.7.txt")
    "$older" "$here/python/run.py" --url "$url" --only-language \
        --serializer graphbinary --serializer graphson3 --serializer graphson2 || failed=1
    address=${url#ws://}
    address=${address%%/*}
    if has mvn Java; then
        for line in 3.7.5 3.8.1; do
            classes=target/driver-java-$line
            mkdir -p "$classes"
            [ -s "$classes/classpath" ] || mvn -q -B -f "$here/java/pom.xml" dependency:build-classpath \
                -Dtinkerpop.version=$line -Dmdep.outputFile="$PWD/$classes/classpath"
            javac -nowarn -Xlint:none -d "$classes" -cp "$(cat "$classes/classpath")" "$here/java/Run.java" 2>/dev/null
            java -cp "$classes:$(cat "$classes/classpath")" Run "${address%:*}" "${address##*:}" "$traversals" || failed=1
        done
    fi
    if has go Go; then
        (cd "$here/go" && go run . "$url" "$traversals") || failed=1
    fi
fi
kill "$server"
if ! wait "$server"; then
    echo "the server did not end with 0 on SIGTERM:" >&2
    tail -n 20 "$log" >&2
    failed=1
fi
trap - EXIT
exit "$failed"
