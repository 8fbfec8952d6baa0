#!/usr/bin/env bash
# Starts a server, runs TinkerPop's feature files against it, and stops it.
# Usage: run.sh MANGROVE [ARGUMENTS OF run.py…]   (MANGROVE: the program)
set -euo pipefail
mangrove=$(realpath "${1:?usage: run.sh MANGROVE}")
shift
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
source conformance/serve.sh

# The suite, unmodified: feature files and data sets.
version=3.8.1
sum=8660a0319913fa09364c556cefedc25456fb5a3f719ecfb4268a3211ecc41f9e
suite=target/tinkerpop
if ! [ -f "$suite/$version" ]; then
    jar=gremlin-test-$version.jar
    own=$(mktemp -d target/.tinkerpop-XXXXXX)
    if ! curl -sSfL --retry 3 -o "$own/$jar" \
        "https://repo1.maven.org/maven2/org/apache/tinkerpop/gremlin-test/$version/$jar"; then
        rm -rf "$own"
        echo "left out: TinkerPop's feature files, because $jar cannot be fetched from Maven Central"
        exit 0
    fi
    echo "$sum  $own/$jar" | sha256sum --check --quiet
    python3 - "$own" "$jar" <<'UNPACK'
import pathlib, sys, zipfile
own = pathlib.Path(sys.argv[1])
wanted = {"org/apache/tinkerpop/gremlin/test/features/": "features", "org/apache/tinkerpop/gremlin/structure/io/": ""}
with zipfile.ZipFile(own / sys.argv[2]) as jar:
    for name in jar.namelist():
        for prefix, folder in wanted.items():
            if name.startswith(prefix) and not name.endswith("/"):
                target = own / folder / name.removeprefix(prefix)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(jar.read(name))
UNPACK
    touch "$own/$version"
    rm -rf "$suite"
    mv -T "$own" "$suite"
fi
python=$("$here/../drivers/python/setup.sh")

serve "$mangrove" "$here/server.toml" tinkerpop-server
"$python" "$here/python/run.py" --url "$url" --features "$suite/features" "$@"
