"""The examples in the documentation run, and the types are right."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pathlib
import pkgutil
import subprocess
import sys

import pytest

import mangrove

FOLDER = pathlib.Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

#: What a module needs besides the package.
NEEDS = {
    "mangrove.algorithms": "pyarrow",
    "mangrove.gremlin": "gremlin_python",
    "mangrove.loading": "pyarrow",
    "mangrove._networks": "torch",
    "mangrove._open": "gremlin_python",
    "mangrove.dgl": "dgl",
    "mangrove.pyg": "torch_geometric",
}


@pytest.mark.parametrize("name", sorted(["mangrove", *(f"mangrove.{module.name}" for module in pkgutil.iter_modules(mangrove.__path__))]))
def test_examples_in_the_code(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert failed == 0


@pytest.mark.parametrize("page", [FOLDER / "README.md", *(FOLDER.parent.parent / page for page in ("README.md", "docs/python.md"))])
def test_examples_in_pages(page: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("gremlin_python", "pandas", "polars", "scipy"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    failed, attempted = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS)
    assert attempted > 0 and failed == 0


def checked(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_are_right() -> None:
    pytest.importorskip("mypy")
    checked("mypy", "--strict", "-p", "mangrove")
    checked("mypy", "--strict", "tests")


def test_the_types_of_the_native_module_are_those_it_has() -> None:
    pytest.importorskip("mypy")
    checked("mypy.stubtest", "mangrove._mangrove", "--mypy-config-file", "pyproject.toml")


def test_another_checker_finds_no_wrong_type() -> None:
    pytest.importorskip("pyright")
    checked("pyright", "python/mangrove", "--pythonpath", sys.executable)


def test_every_public_name_is_explained() -> None:
    missing = []
    for name in mangrove.__all__:
        thing = getattr(mangrove, name)
        if (isinstance(thing, type) or inspect.isroutine(thing)) and not (thing.__doc__ or "").strip():
            missing.append(name)
        if isinstance(thing, type):
            for member, value in vars(thing).items():
                if not member.startswith("_") and callable(value) and not (value.__doc__ or "").strip():
                    missing.append(f"{name}.{member}")
    assert missing == []
