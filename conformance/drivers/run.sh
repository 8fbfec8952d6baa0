#!/usr/bin/env bash
# Starts a server, runs the checks of the official clients against it, and stops it. The server must end with 0 on SIGTERM.
# Packages of clients are downloaded once, to target/. If the toolchain of a client is missing, or its packages cannot be
# fetched, the client is left out with a line.
# Usage: run.sh MANGROVE [quick]   (the program; `quick` for gremlinpython, gremlin in JavaScript and graph-explorer only)
set -euo pipefail
mangrove=$(realpath "${1:?usage: run.sh MANGROVE [quick]}")
which=${2:-all}
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
source conformance/serve.sh

data=target/testdata/tinkerpop
if ! conformance/testdata/tinkerpop.sh; then
    echo "left out: the official clients, because TinkerPop's sample graphs cannot be fetched (see above)"
    exit 0
fi

failed=0
# Runs a check. If it fails, the others still run.
check() { # COMMAND...
    "$@" || failed=1
}

# Succeeds if the toolchain of a client is installed.
has() { # CLIENT COMMAND...
    local client=$1 command
    shift
    for command in "$@"; do
        if ! command -v "$command" >/dev/null; then
            echo "left out: $client, because $command is missing"
            return 1
        fi
    done
}

# Fetches the packages of a client by a command, whose errors are shown. Its output is in `fetched`.
fetch() { # CLIENT COMMAND...
    local client=$1
    shift
    fetched=$("$@") && return 0
    echo "left out: $client, because its packages could not be fetched (see above); check the access to its registry"
    return 1
}

python() { # DIRECTORY REQUIREMENTS [PIP-OPTION…]
    "$here/python/setup.sh" "$PWD/target/$1" "$here/$2" "${@:3}"
}

npm_packages() { # FOLDER
    cmp -s "$here/javascript/package.json" "$1/package.json" && return 0
    mkdir -p "$1"
    cp "$here/javascript/package.json" "$1/package.json.new"
    npm install --silent --no-fund --no-audit --prefix "$1" \
        "gremlin@$(node -p "require('$here/javascript/package.json').dependencies.gremlin")" >&2 &&
        mv "$1/package.json.new" "$1/package.json"
}

# Writes the classpath of a pom's dependencies to FOLDER/classpath.
java_packages() { # FOLDER POM [MVN-OPTION…]
    mkdir -p "$1"
    [ -s "$1/classpath" ] && return 0
    mvn -q -B -f "$here/$2" dependency:build-classpath -Dmdep.outputFile="$PWD/$1/classpath" "${@:3}" >&2
}

go_modules() {
    (cd "$here/go" && go mod download) >&2
}

serve "$mangrove" "$here/server.toml" conformance-server
address=${url#ws://}
address=${address%%/*}
host=${address%:*} port=${address##*:}
traversals=$here/python/traversals.json

if fetch "gremlinpython 3.8" python venv-gremlinpython python/requirements.txt; then
    check "$fetched" "$here/python/run.py" --url "$url" --memory-limited --serializer graphbinary --serializer graphson3
    check "$fetched" "$here/python/security.py" "$mangrove"
    [ "$which" = quick ] ||
        check "$fetched" "$here/python/run.py" --url "$url" --only-language --serializer graphson2
fi

if has "the console in a terminal" python3; then
    check python3 "$here/../console/run.py" "$mangrove"
fi
if has "graph-explorer" node; then
    check node "$here/graph-explorer/run.js" "$mangrove" "$data/tinkerpop-modern.json"
fi
if has "gremlin (JavaScript)" node npm && fetch "gremlin (JavaScript)" npm_packages target/driver-javascript; then
    NODE_PATH=target/driver-javascript/node_modules check node "$here/javascript/run.js" "$url"
fi
if [ "$which" != quick ]; then
    if fetch "gremlinpython 3.7" python venv-gremlinpython-3.7 python/requirements-3.7.txt; then
        check "$fetched" "$here/python/run.py" --url "$url" --only-language \
            --serializer graphbinary --serializer graphson3 --serializer graphson2
    fi
    # The requirements list its packages one by one, without those that only its web pages need.
    if fetch "graph-notebook" python venv-graph-notebook graph-notebook/requirements.txt --no-deps; then
        check "$fetched" "$here/graph-notebook/magics.py" "$url"
    fi
    for line in 3.7.5 3.8.1; do
        client="gremlin-driver (Java) $line"
        classes=target/driver-java-$line
        has "$client" java javac mvn || continue
        fetch "$client" java_packages "$classes" java/pom.xml "-Dtinkerpop.version=$line" || continue
        javac -nowarn -Xlint:none -d "$classes" -cp "$(cat "$classes/classpath")" "$here/java/Run.java" 2>/dev/null
        check java -cp "$classes:$(cat "$classes/classpath")" Run "$host" "$port" "$traversals"
    done
    client="the Gremlin Console"
    if has "$client" java mvn && fetch "$client" java_packages target/console console/pom.xml; then
        check "$here/console/run.sh" "$host" "$port" target/console
    fi
    if has "gremlin-go" go && fetch "gremlin-go" go_modules; then
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
