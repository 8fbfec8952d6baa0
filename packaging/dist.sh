#!/usr/bin/env bash
# Makes target/dist/mangrove-VERSION-x86_64-linux.tar.gz: the program with its manual page and completions, the service, an
# example configuration, an installer, README and LICENSE.
#
# If Rust's musl target and a C compiler for it are installed (rustup target add x86_64-unknown-linux-musl; musl-tools on
# Debian), the program is static. Otherwise it needs the C library of the build system, or a later one. The file BUILD in the
# archive says which.
# Usage: dist.sh [PROGRAM]   (a program that is built already; default: builds a release)
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=mangrove-$version-$(uname -m)-linux
musl=$(uname -m)-unknown-linux-musl

# The largest size of a release's program, in bytes.
size_max=30000000
if [ $# -ge 1 ]; then
    program=$1
    size_max=
elif rustup target list --installed 2>/dev/null | grep -qx "$musl" && command -v musl-gcc >/dev/null; then
    cargo build --release --locked --target "$musl" --package mangrove-cli --bin mangrove
    program=${CARGO_TARGET_DIR:-target}/$musl/release/mangrove
else
    cargo build --release --locked --package mangrove-cli --bin mangrove
    program=${CARGO_TARGET_DIR:-target}/release/mangrove
fi

folder=target/dist/$name
rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/share/man/man1" "$folder/share/completions" "$folder/docs" "$folder/monitoring"
install -m 755 "$program" "$folder/bin/mangrove"
# Symbols and line tables would be most of the archive, so they are in a file beside it. Debuggers, profilers and the backtrace of
# a panic find them by the link.
symbols=$name.debug
objcopy --only-keep-debug "$folder/bin/mangrove" "target/dist/$symbols"
strip --strip-all "$folder/bin/mangrove"
(cd target/dist && objcopy --add-gnu-debuglink="$symbols" "$name/bin/mangrove")
size=$(stat --format %s "$folder/bin/mangrove")
if [ -n "$size_max" ] && [ "$size" -ge "$size_max" ]; then
    echo "the program has $size bytes, and size_max is $size_max: find the cause (cargo bloat), or raise size_max" >&2
    exit 1
fi
libraries=$(ldd "$folder/bin/mangrove" 2>/dev/null | awk '/=> \// { print $1 }' | sort | paste -sd ' ')
if [ -z "$libraries" ]; then
    linkage="static: it needs no library"
else
    libc=$(objdump -T "$folder/bin/mangrove" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
    linkage="dynamic: it needs $libraries (${libc/_/ } or later)"
fi
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
printf 'mangrove %s, commit %s\n%s\n' "$version" "$commit" "$linkage" >"$folder/BUILD"

"$folder/bin/mangrove" man >"$folder/share/man/man1/mangrove.1"
"$folder/bin/mangrove" completions bash >"$folder/share/completions/mangrove.bash"
"$folder/bin/mangrove" completions zsh >"$folder/share/completions/_mangrove"
"$folder/bin/mangrove" completions fish >"$folder/share/completions/mangrove.fish"
cp README.md LICENSE CHANGELOG.md "$folder/"
cp docs/*.md "$folder/docs/"
cp -r docs/img "$folder/docs/"
cp packaging/{mangrove.service,mangrove.toml,sysusers.conf,logrotate.conf,install.sh} "$folder/"
cp packaging/monitoring/* "$folder/monitoring/"
tar -C target/dist --sort=name --owner=0 --group=0 --numeric-owner -czf "target/dist/$name.tar.gz" "$name"
rm -rf "$folder"
echo "target/dist/$name.tar.gz: $(du -h "target/dist/$name.tar.gz" | cut -f 1), with a program of $((size / 1000000)) MB, $linkage; symbols in target/dist/$symbols"
