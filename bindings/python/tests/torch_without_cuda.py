"""Lets PyTorch's wheel of PyPI be imported without the 3 GB of CUDA libraries that it names.

Usage: PYTHON torch_without_cuda.py, with the Python whose `torch` was installed with `pip install --no-deps torch`.

The wheel for Linux is linked with the libraries of CUDA, and the loader fails without them, though nothing calls them on a machine that has
no such device. This script compiles libraries of the same names beside PyTorch's own. They have the functions that PyTorch names,
and each answers 100: there is no device. It needs gcc, nm and readelf. For tests only.
"""

from __future__ import annotations

import collections
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

#: The beginnings of the names of functions of CUDA.
FUNCTIONS = re.compile(r"(cu[A-Z]|cuda|cublas|cudnn|cufft|cufile|cupti|cusolver|cusparse|nccl|nvrtc|nvshmem|__cuda)")
#: The library of a function whose name has no version.
OWNERS = {"cusparseLt": "libcusparseLt", "cuFile": "libcufile", "nccl": "libnccl", "nvshmem": "libnvshmem_host", "cu": "libcuda"}


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def owner(name: str, libraries: list[str]) -> str:
    stem = next(stem for beginning, stem in OWNERS.items() if name.startswith(beginning))
    # A library that PyTorch loads only when it is used is not among them: then any library may have the function.
    return next((library for library in libraries if library.startswith(stem + ".")), libraries[0])


def main() -> int:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        print("torch is not installed: pip install --no-deps torch")
        return 1
    folder = Path(spec.origin).parent / "lib"
    needed, undefined, defined = set(), set(), set()
    for library in folder.glob("*.so"):
        needed |= set(re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", str(library))))
        for line in output("nm", "-D", str(library)).splitlines():
            *address, kind, name = line.split()
            if address:
                defined.add(name.split("@")[0])
            elif kind in "Uwv":
                undefined.add(name)
    there = {path.name for path in folder.iterdir()} | set(re.findall(r"^\s*(\S+) \(", output("/sbin/ldconfig", "-p"), re.M))
    missing = sorted(library for library in needed - there if re.match(r"lib(cu|nccl|nv)", library))
    if not missing:
        print("all libraries are there")
        return 0
    by_library: dict[str, dict[str, set[str]]] = {library: collections.defaultdict(set) for library in missing}
    for symbol in undefined:
        name, _, version = symbol.partition("@")
        if name in defined:
            continue
        if version in by_library:
            by_library[version][version].add(name)
        elif version == "NVSHMEM":
            by_library[owner("nvshmem", missing)][version].add(name)
        elif not version and FUNCTIONS.match(name):
            by_library[owner(name, missing)][""].add(name)
    with tempfile.TemporaryDirectory() as work:
        for name_of_library, versions in by_library.items():
            source, script = Path(work, "stand_in.c"), Path(work, "versions.map")
            names = sorted(set().union(*versions.values()))
            source.write_text("".join(f"int {name}(void) {{ return 100; }}\n" for name in names))
            named = {version: of_version for version, of_version in versions.items() if version}
            script.write_text(
                "".join(
                    f"{version} {{\n" + "".join(f"  {name};\n" for name in sorted(of_version)) + "};\n"
                    for version, of_version in named.items()
                )
            )
            link = [f"-Wl,--version-script={script}"] if named else []
            output(
                "gcc", "-shared", "-fPIC", "-fno-builtin", "-w", "-o", str(folder / name_of_library), str(source),
                f"-Wl,-soname,{name_of_library}", *link,
            )
    print(f"stand-ins for {', '.join(missing)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
