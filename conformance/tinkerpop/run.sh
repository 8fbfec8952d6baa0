#!/usr/bin/env bash
# Starts a server, runs TinkerPop's feature files against it, and stops it.
# Usage: run.sh MANGROVE [--line LINE] [--form FORM] [--serializer SERIALIZER] [ARGUMENTS OF run.py…]
#        run.sh MANGROVE quick | all
# MANGROVE is the program, LINE is 3.8.1 (default) or 3.7.5, FORM is text (default), bytecode or go, SERIALIZER is graphbinary
# (default) or graphson3. `all` runs all combinations of text and bytecode, and go with its one version and serializer.
# `quick`, which CI runs, is all scenarios in one combination and some scenarios in the others.
set -euo pipefail
mangrove=$(realpath "${1:?usage: run.sh MANGROVE [quick | all | ARGUMENTS…]}")
shift
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
source conformance/serve.sh
source conformance/tinkerpop/suite.sh

# Fetches the feature files of a TinkerPop version.
feature_files() { # LINE
    suite "$1" && return 0
    echo "left out: TinkerPop's feature files of $1, because they cannot be fetched (see above)"
    return 1
}

# Compiles TinkerPop's own runner for a version.
runner() { # LINE; sets `classes`
    local line=$1
    classes=target/features-java-$line
    if ! { command -v mvn && command -v javac; } >/dev/null; then
        echo "left out: the feature files of $line as bytecode, because Maven or the Java compiler is missing"
        return 1
    fi
    mkdir -p "$classes/META-INF/services"
    [ -s "$classes/classpath" ] || mvn -q -B -f "$here/java/pom.xml" dependency:build-classpath \
        -Dtinkerpop.version="$line" -Dmdep.outputFile="$PWD/$classes/classpath"
    echo 'Features$Steps' >"$classes/META-INF/services/io.cucumber.core.backend.ObjectFactory"
    [ "$classes/Features.class" -nt "$here/java/Features.java" ] ||
        javac -nowarn -Xlint:none -d "$classes" -cp "$(cat "$classes/classpath")" "$here/java/Features.java" 2>/dev/null
}

# Compiles the Go client's own runner.
go_runner() { # sets `classes`
    classes=target/features-go
    if ! command -v go >/dev/null; then
        echo "left out: the feature files with the Go client, because go is missing"
        return 1
    fi
    mkdir -p "$classes"
    (cd "$here/../go-godog" &&
        go test -c -o "$OLDPWD/$classes/runner" github.com/apache/tinkerpop/gremlin-go/v3/driver/cucumber)
}

# Runs one combination. If its files or its runner cannot be fetched or compiled here, it is left out with a line, and does not
# fail.
combination() { # LINE FORM SERIALIZER [ARGUMENTS OF run.py…]
    local line=$1 form=$2 serializer=$3 features=target/tinkerpop-$1/features classes
    shift 3
    feature_files "$line" || return 0
    case $form in
    bytecode)
        runner "$line" || return 0
        set -- --runner "$classes" "$@"
        ;;
    go)
        go_runner || return 0
        set -- --runner "$classes" "$@"
        ;;
    esac
    echo "-- $line as $form with $serializer"
    "$python" "$here/python/run.py" --url "$url" --features "$features" --line "$line" --form "$form" \
        --serializer "$serializer" "$@"
}

python=$("$here/../drivers/python/setup.sh")
# The server's data sets are those of the newest version.
feature_files 3.8.1 || exit 0
# Files that scenarios read, at the paths that they name.
mkdir -p target/tinkerpop-io/data
cp target/tinkerpop-3.8.1/graphml/tinkerpop-modern.xml target/tinkerpop-io/data/
cp target/tinkerpop-3.8.1/graphson/tinkerpop-modern-v3.json target/tinkerpop-io/data/tinkerpop-modern.json
serve "$mangrove" "$here/server.toml" tinkerpop-server

failed=0
case ${1:-} in
quick)
    shift
    slice=(--only mergeE --only Path --only Repeat --only Order --only Math --only AsDate)
    combination 3.8.1 text graphbinary "$@" || failed=1
    combination 3.8.1 text graphson3 "${slice[@]}" "$@" || failed=1
    combination 3.8.1 bytecode graphbinary "${slice[@]}" "$@" || failed=1
    combination 3.7.5 bytecode graphson3 "${slice[@]}" "$@" || failed=1
    ;;
all)
    shift
    for line in 3.8.1 3.7.5; do
        for form in text bytecode; do
            for serializer in graphbinary graphson3; do
                combination "$line" "$form" "$serializer" "$@" || failed=1
            done
        done
    done
    combination 3.8.1 go graphbinary "$@" || failed=1
    ;;
*)
    line=3.8.1 form=text serializer=graphbinary rest=()
    while [ $# -gt 0 ]; do
        case $1 in
        --line | --form | --serializer)
            declare "${1#--}=${2:?$1 wants a value}"
            shift 2
            ;;
        *)
            rest+=("$1")
            shift
            ;;
        esac
    done
    combination "$line" "$form" "$serializer" "${rest[@]}" || failed=1
    ;;
esac
exit "$failed"
