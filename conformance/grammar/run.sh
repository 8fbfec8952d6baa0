#!/usr/bin/env bash
# Compares the parser with TinkerPop's own on the traversals of the feature files (if they are there), on scripts generated from
# the grammar, and on mutations of all of these.
# Usage: run.sh PARSER [SEED [GENERATED [MUTATIONS]]]   (PARSER: the example `grammar` of mangrove-oracle)
set -euo pipefail
parser=$(realpath "${1:?usage: run.sh PARSER [SEED [GENERATED [MUTATIONS]]]}")
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
if ! { command -v javac && command -v mvn; } >/dev/null; then
    echo "left out: the parser against TinkerPop's, because Maven or the Java compiler is missing"
    exit 0
fi

jars=target/grammar/jars
mkdir -p "$jars" target/grammar/classes
fetch() { # GROUP ARTIFACT VERSION SUM
    local jar=$2-$3.jar
    [ -f "$jars/$jar" ] && return 0
    if ! mvn -q -B dependency:copy -Dartifact="$1:$2:$3" -DoutputDirectory="$PWD/$jars/new" >&2; then
        echo "left out: the parser against TinkerPop's, because $jar could not be fetched (see above)"
        return 1
    fi
    echo "$4  $jars/new/$jar" | sha256sum --check --quiet
    mv "$jars/new/$jar" "$jars/$jar"
}
fetch org.apache.tinkerpop gremlin-language 3.8.1 \
    c5ff6b06d9eacf881a4919c92c57551c6d71479b727d638259c354d6c2fcbbd0 || exit 0
fetch org.antlr antlr4-runtime 4.9.1 a80502c3140ae7acfbb1f57847c8eb1c101461a969215ec38c3f1ebdff61ac29 || exit 0
javac -d target/grammar/classes -cp "$jars/*" "$here"/java/*.java

features=target/tinkerpop-3.8.1/features
answers=target/grammar/answers
{ if [ -d "$features" ]; then python3 "$here/corpus.py" "$features"; fi; } |
    java -cp "target/grammar/classes:$jars/*" Grammar "${2:-1}" "${3:-300}" "${4:-0}" >"$answers"
"$parser" <"$answers"
