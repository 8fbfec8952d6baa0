#!/usr/bin/env bash
# Compares the corpus and random cases with TinkerPop's own TinkerGraph, fetched from Maven Central.
# Usage: run.sh REFERENCE                     (what CI runs: the corpus, and some random cases)
#        run.sh REFERENCE corpus [--record]
#        run.sh REFERENCE cases FIRST COUNT [--writes SHARE] [--tell REASON]
#        run.sh REFERENCE ask GRAPH SCRIPT
# REFERENCE is this crate's program, target/debug/mangrove-reference.
set -euo pipefail
program=$(realpath "${1:?usage: run.sh REFERENCE [corpus | cases FIRST COUNT | ask GRAPH SCRIPT]}")
shift
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
if ! { command -v mvn && command -v javac; } >/dev/null; then
    echo "left out: the engine beside TinkerGraph, because Maven or the Java compiler is missing"
    exit 0
fi
classes=target/reference
mkdir -p "$classes"
if ! [ -s "$classes/classpath" ]; then
    if ! mvn -q -B -f "$here/java/pom.xml" dependency:build-classpath -Dmdep.outputFile="$PWD/$classes/classpath.new"; then
        echo "left out: the engine beside TinkerGraph, because Maven Central cannot be reached"
        exit 0
    fi
    mv "$classes/classpath.new" "$classes/classpath"
fi
class_path=$classes:$(cat "$classes/classpath")
[ "$classes/Reference.class" -nt "$here/java/Reference.java" ] ||
    javac -nowarn -Xlint:none -d "$classes" -cp "$class_path" "$here/java/Reference.java"

if [ $# -gt 0 ]; then
    exec "$program" "$class_path" "$@"
fi
failed=0
"$program" "$class_path" corpus || failed=1
# The first seed is 0, as in the differential test of crates/db, so both judges can be compared on a difference.
"$program" "$class_path" cases 0 "${REFERENCE_CASES:-1000}" || failed=1
exit "$failed"
