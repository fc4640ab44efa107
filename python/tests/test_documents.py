"""Examples of the docstrings, of docs/python.md and of the folder examples run."""

import doctest
import pathlib
import re
import runpy
import sys

import numpy as np
import pytest

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
