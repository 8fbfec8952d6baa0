#!/usr/bin/env bash
# Shows mutated inputs to the targets (all, if none is named), one after the other, with the stable toolchain:
#   fuzz/run.sh SECONDS [TARGET...]
# or with libFuzzer, which keeps inputs that reach new branches (needs Rust's nightly toolchain and a C++ compiler):
#   fuzz/run.sh coverage SECONDS [TARGET...]
# Inputs that did harm are left in target/fuzz. Add such an input to fuzz/corpus/TARGET in the commit that fixes the cause.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=stable
if [ "${1:-}" = coverage ]; then
    mode=coverage
    shift
fi
seconds=${1:?usage: fuzz/run.sh [coverage] SECONDS [TARGET...]}
shift
found=target/fuzz
mkdir -p "$found"

if [ "$mode" = stable ]; then
    cargo build --quiet --package mangrove-fuzz
    targets=()
    for target in "$@"; do targets+=(--target "$target"); done
    exec "${CARGO_TARGET_DIR:-target}/debug/mangrove-fuzz" --seconds "$seconds" --seed "${MANGROVE_FIRST:-$RANDOM}" "${targets[@]}"
fi

host=$(rustc -vV | sed -n 's/^host: //p')
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags+=" -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
# With --target, cargo builds build scripts without the flags.
RUSTFLAGS=$flags CARGO_TARGET_DIR=target/coverage \
    cargo +nightly build --quiet --manifest-path fuzz/coverage/Cargo.toml --target "$host"
program=target/coverage/$host/debug/mangrove-fuzz-coverage
if [ $# = 0 ]; then
    cargo build --quiet --package mangrove-fuzz
    set -- $("${CARGO_TARGET_DIR:-target}/debug/mangrove-fuzz" --list)
fi
failed=0
for target in "$@"; do
    # New inputs go to the first folder; those in the repository are only read.
    folders=("$found/corpus/$target")
    mkdir -p "${folders[0]}"
    [ -d "fuzz/corpus/$target" ] && folders+=("fuzz/corpus/$target")
    echo "== $target"
    MANGROVE_FUZZ_TARGET=$target "$program" "${folders[@]}" -max_total_time="$seconds" \
        -max_len=4096 -timeout=5 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$found/$target-" \
        2>"$found/$target.log" || failed=$((failed + 1))
    grep -E '^stat::number_of_executed_units|^#.*DONE|SUMMARY|panicked' "$found/$target.log" || true
done
[ "$failed" = 0 ]
