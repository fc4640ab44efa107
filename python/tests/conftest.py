"""What the tests share."""

import importlib
import os
import pathlib
import re

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption("--calls", type=int, default=300, help="random calls of the test with eight threads")


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(scope="session")
def program():
    """The command nbody, named by NBODY_PROGRAM."""
    path = os.environ.get("NBODY_PROGRAM")
    if path is None:
        pytest.skip("NBODY_PROGRAM does not name the command nbody")
    return str(pathlib.Path(path).resolve())


def client(name):
    """The package ``name``, which nbody_fmm works with. Without it a test is skipped, or fails where it is required."""
    try:
        return importlib.import_module(name)
    except ImportError:
        listed = re.search(rf"^{name}==", (ROOT / "scripts" / "requirements-clients.txt").read_text(), re.M)
        if listed and os.environ.get("NBODY_REQUIRE_READERS") == "1":
            pytest.fail(f"no {name}: scripts/setup installs it")
        pytest.skip(f"skipped: no {name}")


@pytest.fixture(params=["jax", "torch"])
def library(request):
    """A library that differentiates: see differentiate.py."""
    client(request.param)
    import differentiate

    return differentiate.LIBRARIES[request.param]()
