# To be sourced: fetches TinkerPop's test package of a version, unmodified, with Maven.

# The SHA-256 of each version's package.
declare -A sums=(
    [3.8.1]=8660a0319913fa09364c556cefedc25456fb5a3f719ecfb4268a3211ecc41f9e
    [3.7.5]=74e127108f341564eb88794d878c100c915a4730edef8456062a60db279c535a
)

# Unpacks a version's package once, to target/tinkerpop-LINE: `features/` has its feature files, `graphson/` and `graphml/`
# its graphs. If the package cannot be fetched or its checksum differs, fails with the reason on standard error.
suite() { # LINE
    local line=$1 at=target/tinkerpop-$1
    [ -f "$at/whole" ] && return 0
    local own jar=gremlin-test-$line.jar
    if ! command -v mvn >/dev/null; then
        echo "Maven is missing, which fetches $jar (on Debian: apt-get install maven)" >&2
        return 1
    fi
    mkdir -p target
    own=$(mktemp -d target/.tinkerpop-XXXXXX)
    if ! mvn -q -B dependency:copy -Dartifact="org.apache.tinkerpop:gremlin-test:$line" -DoutputDirectory="$PWD/$own" >&2 ||
        ! echo "${sums[$line]}  $own/$jar" | sha256sum --check --quiet >&2; then
        rm -rf "$own"
        echo "$jar could not be fetched (see above); check the access to Maven Central" >&2
        return 1
    fi
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
    touch "$own/whole"
    rm -rf "$at"
    mv -T "$own" "$at"
}
