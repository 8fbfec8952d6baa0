#!/usr/bin/env bash
# Copies TinkerPop's sample graphs to target/testdata/tinkerpop, where tests expect them: from the archive of data sets beside
# this checkout if there is one, or else from TinkerPop's own test package. If there is neither, fails with the reason.
set -euo pipefail
cd "$(dirname "$0")/../.."
data=target/testdata/tinkerpop
[ -d "$data" ] && exit 0
mkdir -p target/testdata
# The folder is moved to its place in one step, because a test may unpack the archive at the same time.
own=$(mktemp -d target/testdata/.unpacking-XXXXXX)
trap 'rm -rf "$own"' EXIT
archive=../shared/data/tinkerpop.tar.gz
if [ -f "$archive" ]; then
    tar -xzf "$archive" -C "$own"
else
    source conformance/tinkerpop/suite.sh
    suite 3.8.1 || exit 1
    mkdir "$own/tinkerpop"
    for graph in grateful-dead tinkerpop-classic tinkerpop-crew tinkerpop-modern tinkerpop-sink; do
        cp "target/tinkerpop-3.8.1/graphson/$graph-v3.json" "$own/tinkerpop/$graph.json"
    done
    for graph in grateful-dead tinkerpop-classic tinkerpop-modern; do
        cp "target/tinkerpop-3.8.1/graphml/$graph.xml" "$own/tinkerpop/"
    done
fi
mv -T "$own/tinkerpop" "$data" 2>/dev/null || [ -d "$data" ]
