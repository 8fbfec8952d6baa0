#!/usr/bin/env bash
# Fetches and builds the sides, then measures. If a side cannot be set up, this names it and leaves it out.
# Usage: run.sh [ARGUMENTS OF peers.py]                    (make bench-peers PEERS_ARGS="…")
#        run.sh --algorithms [ARGUMENTS OF algorithms.py]    (make bench-algorithms ALGORITHMS_ARGS="…")
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
target=${CARGO_TARGET_DIR:-$PWD/target}
own=$target/peers
mkdir -p "$own"
sides=()

# The libraries of algorithms, in a virtual environment of their own.
if [ "${1-}" = --algorithms ]; then
    shift
    cargo build --release --package mangrove-bench --example algorithms_side
    if ! cmp -s "$here/requirements-algorithms.txt" "$own/venv-algorithms/requirements.txt"; then
        echo "installing from PyPI: $(grep -v '^#' "$here/requirements-algorithms.txt" | xargs)" >&2
        python3 -m venv --clear "$own/venv-algorithms" >&2
        # One by one: a library that cannot be installed is left out, and the others are measured.
        if ! grep -v '^#' "$here/requirements-algorithms.txt" | while read -r library; do
            "$own/venv-algorithms/bin/pip" install --quiet --disable-pip-version-check "$library" >&2 || echo "$library"
        done | grep . >&2; then
            cp "$here/requirements-algorithms.txt" "$own/venv-algorithms/requirements.txt"
        else
            echo "the libraries above could not be installed (check the access to PyPI): they are left out" >&2
        fi
    fi
    exec "$own/venv-algorithms/bin/python" "$here/algorithms.py" --folder "$own" \
        --embedded "$target/release/examples/algorithms_side" "$@"
fi

cargo build --release --package mangrove-cli --package mangrove-bench --bin mangrove --example peers_side
sides+=(--embedded "$target/release/examples/peers_side" --mangrove "$target/release/mangrove")

# The clients and Ladybug, in a virtual environment of their own.
python=$own/venv/bin/python
if ! cmp -s "$here/requirements.txt" "$own/venv/requirements.txt"; then
    echo "installing from PyPI: $(grep -v '^#' "$here/requirements.txt" | xargs)" >&2
    if python3 -m venv --clear "$own/venv" >&2 &&
        "$own/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2; then
        cp "$here/requirements.txt" "$own/venv/requirements.txt"
    else
        echo "Ladybug and the Gremlin client could not be installed (check the access to PyPI): only the" \
            "embedded Mangrove is measured" >&2
        python=python3
        sides+=(--sides mangrove-prepared,mangrove-text)
    fi
fi

# The reference Gremlin Server.
jars=$own/jars
if ! cmp -s "$here/tinkergraph/pom.xml" "$jars/pom.xml"; then
    if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then
        echo "TinkerGraph is left out: it needs java and mvn (on Debian: apt-get install openjdk-17-jre-headless maven)" >&2
    else
        echo "fetching Gremlin Server from Maven" >&2
        rm -rf "$jars"
        if mvn --batch-mode --quiet --file "$here/tinkergraph/pom.xml" dependency:copy-dependencies \
            -DoutputDirectory="$jars" -DincludeScope=runtime >&2; then
            cp "$here/tinkergraph/pom.xml" "$jars/pom.xml"
        else
            echo "TinkerGraph is left out: Maven could not fetch Gremlin Server (check the access to repo1.maven.org)" >&2
        fi
    fi
fi
if cmp -s "$here/tinkergraph/pom.xml" "$jars/pom.xml"; then
    sides+=(--jars "$jars")
fi

exec "$python" "$here/peers.py" --folder "$own" "${sides[@]}" "$@"
