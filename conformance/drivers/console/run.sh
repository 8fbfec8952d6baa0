#!/usr/bin/env bash
# Runs the Gremlin Console in remote mode by a script: it connects, submits, switches to and from `:remote console`, works in a
# session, and must print the text of `expected.txt`.
# Usage: run.sh HOST PORT FOLDER   (a folder with the classpath; the output goes there)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
host=$1 port=$2 folder=$3
folder=$(realpath "$folder")

cat >"$folder/remote.yaml" <<END
hosts: [$host]
port: $port
serializer: { className: org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1, config: { serializeResultToString: true } }
END
sed "s|REMOTE|$folder/remote.yaml|" "$here/script.groovy" >"$folder/script.groovy"
# It has plugins and a history of its own. Its start takes most of the time.
java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.home="$folder" -cp "$(cat "$folder/classpath")" \
    org.apache.tinkerpop.gremlin.console.Console -C -e "$folder/script.groovy" >"$folder/printed" 2>"$folder/errors" || true
# Removes colors, addresses and the id of the session.
sed -E -e 's/\x1b\[[0-9;]*m//g' -e 's/Gremlin Server - \[[^]]*\](-\[[^]]*\])?/Gremlin Server/' -e 's/^==>Configured .*/==>Configured/' \
    "$folder/printed" | grep '^==>' >"$folder/answers" || true
if diff "$here/expected.txt" "$folder/answers"; then
    echo "the Gremlin Console: $(wc -l <"$here/expected.txt") passed, 0 failed"
else
    head -n 5 "$folder/errors"
    echo "the Gremlin Console: 0 passed, 1 failed"
    exit 1
fi
