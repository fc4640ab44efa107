"""Examples of the docstrings, of docs/python.md and of the folder examples run."""

import doctest
import importlib
import json
import pathlib
import re
import runpy
import sys

import numpy as np
import pytest
from conftest import client

import nbody_fmm

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_docstrings():
    names = {"nbody_fmm": nbody_fmm, "np": np}
    for module, fewest in [(nbody_fmm, 10), (nbody_fmm.simulation, 6)]:
        failed, run = doctest.testmod(module, extraglobs=names)
        assert run >= fewest and failed == 0, module


def test_page():
    page = (ROOT / "docs" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(blocks) >= 3
    names = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_examples_of_gradients(name):
    client(name)
    module = importlib.import_module(f"nbody_fmm.{name}")
    failed, run = doctest.testmod(module)
    assert run >= 5 and failed == 0
    page = (ROOT / "docs" / "python.md").read_text()
    (block,) = re.findall(rf"```python {name}\n(.*?)```", page, re.S)
    exec(compile(block, "docs/python.md", "exec"), {})


@pytest.mark.parametrize("path", sorted((ROOT / "python" / "examples").glob("*.ipynb")), ids=lambda p: p.name)
def test_notebooks(path):
    notebook = json.loads(path.read_text())
    assert notebook["nbformat"] == 4
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if any("import jax" in "".join(cell["source"]) for cell in cells):
        client("jax")
    names = {}
    for number, cell in enumerate(cells):
        assert cell["outputs"] == [] and cell["execution_count"] is None, "outputs are not committed"
        exec(compile("".join(cell["source"]), f"{path.name}, code cell {number}", "exec"), names)


@pytest.mark.parametrize("path", sorted((ROOT / "python" / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples(path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


def test_every_argument_is_documented():
    import inspect

    arguments = inspect.signature(nbody_fmm.evaluate).parameters
    page = inspect.getdoc(nbody_fmm.evaluate)
    listed = re.search(r"Parameters\n-+\n(.*?)\n\nReturns", page, re.S)[1]
    named = [name.strip() for line in re.findall(r"^(\w[\w, ]*) :", listed, re.M) for name in line.split(",")]
    assert named == list(arguments)
    of_solver = inspect.signature(nbody_fmm.Solver).parameters
    assert list(of_solver) == named[3:]
    assert all(of_solver[name] == arguments[name] for name in of_solver)
