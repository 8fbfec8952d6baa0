#!/usr/bin/env bash
# Puts the package where a Python finds it, as a wheel installs it: its Python files, with the native module beside them.
# Usage: place_package.sh PYTHON NATIVE-MODULE
set -euo pipefail
python=${1:?usage: place_package.sh PYTHON NATIVE-MODULE}
module=${2:?usage: place_package.sh PYTHON NATIVE-MODULE}
here=$(cd "$(dirname "$0")" && pwd)
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
rm -rf "$site/mangrove"
cp -r "$here/python/mangrove" "$site/mangrove"
cp "$module" "$site/mangrove/_mangrove.abi3.so"
