#!/usr/bin/env bash
# Puts TinkerPop's sample graphs into target/testdata/tinkerpop, where tests look for them: from the archive of data sets if
# that is beside this checkout, or else out of TinkerPop's own test package. Fails, and says why, where neither can be had.
set -euo pipefail
cd "$(dirname "$0")/../.."
data=target/testdata/tinkerpop
[ -d "$data" ] && exit 0
mkdir -p target/testdata
# Into place in one step: a test may be unpacking the archive at the same moment.
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
