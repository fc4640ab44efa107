"""Results have the bits of `nbody eval`."""

import subprocess

import numpy as np
import pytest

import nbody_fmm

# Kernel, number of axes, options.
CASES = [
    ("laplace", 3, {}),
    ("laplace", 3, {"method": "direct"}),
    ("laplace", 3, {"method": "treecode"}),
    ("laplace", 3, {"method": "fmm", "tolerance": 1e-6}),
    ("laplace", 3, {"method": "fmm", "precision": "f32", "tolerance": 1e-3}),
    ("laplace", 3, {"method": "fmm", "order": 5, "theta": 0.6, "leaf_size": 20}),
    ("laplace", 3, {"softening": "plummer:0.05"}),
    ("laplace", 3, {"softening": "spline:0.02"}),
    ("laplace", 3, {"box": 1.5, "method": "fmm"}),
    ("laplace", 3, {"box": (1.5, 1.25, 2.0), "surroundings": "vacuum"}),
    ("laplace", 3, {"box": 1.5, "method": "direct", "surroundings": 78.5}),
    ("laplace", 3, {"exclusions": [[0, 1], [5, 2]]}),
    ("laplace", 3, {"box": 1.5, "exclusions": [[0, 1], [5, 2]]}),
    ("yukawa:2.5", 3, {"method": "fmm"}),
    ("vortex", 3, {}),
    ("vortex", 3, {"method": "fmm", "softening": "p1:0.02"}),
    ("log", 2, {}),
    ("log", 2, {"method": "fmm", "softening": "gaussian:0.01"}),
    ("harmonic", 2, {"method": "fmm"}),
    ("harmonic", 2, {"method": "direct", "softening": "algebraic:0.01"}),
    ("gauss:0.2", 1, {}),
    ("gauss:0.2", 2, {"method": "direct"}),
    ("gauss:0.2", 3, {"method": "fmm"}),
]


def identity(case):
    return " ".join([case[0], str(case[1]), *(f"{k}={v}" for k, v in case[2].items())])


def strengths_of(kernel, rng, n):
    """Strengths for Python and the same as columns of a file. In a box they add up to zero."""
    if kernel == "vortex":
        w = rng.normal(size=(n, 3))
        return w, w
    if kernel == "harmonic":
        q = rng.normal(size=n) + 1j * rng.normal(size=n)
        return q, np.stack([q.real, q.imag], axis=1)
    q = rng.choice([-1.0, 1.0], size=n // 2)
    q = np.concatenate([q, -q])
    return q, q


def options_of(options, folder):
    """The options of the command."""
    names = {"box": "periodic", "leaf_size": "leaf-size"}
    for name, value in options.items():
        if name == "exclusions":
            file = folder / "pairs.csv"
            file.write_text("i,j\n" + "".join(f"{i},{j}\n" for i, j in value))
            value = file
        elif isinstance(value, tuple):
            value = ",".join(map(repr, value))
        yield f"--{names.get(name, name)}={value}"


@pytest.mark.parametrize("apart", [False, True], ids=["at the sources", "at targets"])
@pytest.mark.parametrize("case", CASES, ids=identity)
def test_bits_of_the_command(case, apart, program, rng, tmp_path):
    kernel, dimension, options = case
    if apart and "exclusions" in options:
        return
    n = 600
    x = rng.random((n, dimension))
    strengths, columns = strengths_of(kernel, rng, n)
    targets = rng.random((150, dimension)) if apart else None
    files = {"sources": x, "strengths": columns, "targets": targets}
    arguments = ["--kernel", kernel, "--device", "cpu", *options_of(options, tmp_path)]
    for name, array in files.items():
        if array is not None:
            np.save(tmp_path / f"{name}.npy", array)
            arguments += [f"--{name}", str(tmp_path / f"{name}.npy")]
    output = tmp_path / "output.npy"
    subprocess.run([program, "eval", *arguments, "--quiet", "--output", output], check=True, timeout=60)
    expected = np.load(output)

    r = nbody_fmm.evaluate(x, strengths, targets, kernel=kernel, device="cpu", **options)
    if kernel == "harmonic":
        found = {"re": r.field.real, "im": r.field.imag}
    else:
        names = ["ux", "uy", "uz"] if kernel == "vortex" else ["ex", "ey", "ez"][:dimension]
        found = dict(zip(names, r.field.T))
        if kernel != "vortex":
            found["potential"] = r.potential
    assert set(found) == set(expected.dtype.names)
    assert (r.potential is None) == (kernel in ("harmonic", "vortex"))
    assert r.device == "cpu"
    for name, values in found.items():
        assert values.tobytes() == np.ascontiguousarray(expected[name]).tobytes(), name
