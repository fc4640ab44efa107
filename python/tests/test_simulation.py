"""Simulations have the bits of `nbody run`, in any portions, and say what is wrong."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest

import nbody_fmm

CLUSTER = {
    "particles": [{"model": "plummer", "n": 200}],
    "force": {"softening": {"kernel": "plummer", "length": 0.05}},
    "solver": {"device": "cpu"},
    "time": {"dt": 0.01, "end": 0.1},
}
EIGHT = {"particles": [{"model": "figure-eight"}], "time": {"dt": 0.01, "end": 1}}
VORTICES = {
    "run": {"dimensions": 2},
    "force": {"law": "vortex", "softening": {"kernel": "gaussian", "length": 0.05}},
    "particles": [{"model": "vortex-patch", "n": 150, "circulation": 1, "axis_ratio": 0.5}],
    "solver": {"device": "cpu"},
    "time": {"dt": 0.05, "end": 0.5},
}
SALT = {
    "units": {"system": "md"},
    "boundary": {"kind": "periodic", "side": 1.2744},
    "force": {"law": "coulomb"},
    "short_range": {
        "kind": "lennard-jones",
        "sigma": 0.2159538,
        "epsilon": 1.4754533,
        "partner_sigma": 0.4830453,
        "partner_epsilon": 0.0534924,
        "cutoff": 0.6,
    },
    "particles": [
        {
            "model": "crystal",
            "cells": 2,
            "spacing": 0.3186,
            "charge": 1,
            "mass": 22.98977,
            "partner_mass": 35.453,
            "surface": "periodic",
        }
    ],
    "thermostat": {"kind": "langevin", "temperature": 1300, "time": 0.01},
    "solver": {"device": "cpu"},
    "time": {"dt": 0.0005, "end": 0.005},
}
CASES = {
    "fmm": {**CLUSTER, "solver": {"device": "cpu", "method": "fmm"}},
    "treecode": {**CLUSTER, "solver": {"device": "cpu", "method": "treecode"}},
    "drift first": {**CLUSTER, "time": {"integrator": "leapfrog-dkd", "dt": 0.01, "end": 0.1}},
    "fourth order": {**CLUSTER, "time": {"integrator": "yoshida4", "dt": 0.02, "end": 0.1}},
    "automatic step": {**CLUSTER, "time": {"dt": "auto", "end": 0.1}},
    "gravity in the plane": {
        **CLUSTER,
        "run": {"dimensions": 2},
        "force": {"softening": {"kernel": "algebraic", "length": 0.05}},
        "particles": [{"model": "uniform-disc", "n": 150}],
    },
    "vortices": VORTICES,
    "vortices by midpoint": {**VORTICES, "time": {"integrator": "midpoint", "dt": 0.05, "end": 0.3}},
    "salt": SALT,
}


def write(scenario, file):
    file.write_text(nbody_fmm._scenario.toml(scenario))
    return file


@pytest.mark.filterwarnings("ignore:time.dt")
@pytest.mark.parametrize("name", CASES)
def test_bits_of_the_command(name, program, tmp_path):
    file = write(CASES[name], tmp_path / "s.toml")
    subprocess.run([program, "run", file, "--out", tmp_path / "run", "--quiet"], check=True, timeout=60, stdout=-3)
    last, table = sorted((tmp_path / "run").glob("snap_*.hdf"))[-1], tmp_path / "last.npy"
    subprocess.run([program, "convert", last, table], check=True, timeout=60, stdout=-3)
    expected = np.load(table)

    sim = nbody_fmm.Simulation(file)
    # In portions, with and without a look in between.
    sim.step(1)
    sim.step(2)
    sim.diagnostics()
    sim.run()
    columns = {axis: sim.positions[:, k] for k, axis in enumerate("xyz")}
    columns.update({f"v{axis}": sim.velocities[:, k] for k, axis in enumerate("xyz")})
    columns["mass"] = sim.masses
    if sim.charges is not None:
        columns["charge"] = sim.charges
    assert len(sim) == len(expected) > 0
    for column, values in columns.items():
        assert values.tobytes() == np.ascontiguousarray(expected[column]).tobytes(), column

    lines = (tmp_path / "run" / "diagnostics.csv").read_text().splitlines()
    header, values = lines[0].split(","), lines[-1].split(",")
    line = {name: float(value) for name, value in zip(header, values) if value}
    assert sim.diagnostics() == line
    # But for the force error, which is measured where [verify] asks, and the id of the run.
    assert header[: len(line)] == list(line) and len(header) == len(line) + 2


@pytest.mark.parametrize("scenario", [CLUSTER, VORTICES, SALT], ids=["gravity", "vortices", "salt"])
def test_portions_and_threads_do_not_count(scenario):
    whole = nbody_fmm.Simulation(scenario, threads=1)
    whole.step(9)
    parts = nbody_fmm.Simulation(scenario, threads=3)
    for _ in range(3):
        assert len(parts.diagnostics()) > 10
        parts.step(0)
        parts.step(3)
    assert parts.positions.tobytes() == whole.positions.tobytes()
    assert parts.velocities.tobytes() == whole.velocities.tobytes()
    assert parts.diagnostics() == whole.diagnostics()


def test_file_dict_and_text_are_the_same(tmp_path):
    file = write(CLUSTER, tmp_path / "s.toml")
    sims = [
        nbody_fmm.Simulation(str(file)),
        nbody_fmm.Simulation(CLUSTER),
        nbody_fmm.Simulation.from_toml(file.read_text()),
    ]
    positions = set()
    for sim in sims:
        sim.run()
        positions.add(sim.positions.tobytes())
    assert len(positions) == 1
    again = nbody_fmm.Simulation.from_toml(sims[1].scenario)
    again.run()
    assert again.positions.tobytes() in positions


def test_dict_as_toml():
    scenario = {
        "title": 'a "title"\n\\ \x7f é \U0001d53e',
        "flags": [True, np.bool_(False)],
        "run": {"seed": np.int64(3), "x": 1e-300, "big": 1e300, "inf": float("inf"), "a b": -1},
        "particles": ({"n": 5, "at": np.arange(3.0)}, {"masses": (1, 2.5), "in": {"deep": {}}}),
        "none": [],
    }
    text = nbody_fmm._scenario.toml(scenario)
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 or newer reads TOML")
    plain = {**scenario, "flags": [True, False]}
    plain["run"] = {**scenario["run"], "seed": 3}
    plain["particles"] = [{"n": 5, "at": [0, 1, 2]}, {"masses": [1, 2.5], "in": {"deep": {}}}]
    assert tomllib.loads(text) == plain


@pytest.mark.parametrize(
    "scenario, error, says",
    [
        (
            {**CLUSTER, "time": {"dt": -1, "end": 1}},
            ValueError,
            ["dt = -1", "time.dt = -1 is outside", "allowed: above 0"],
        ),
        ({**CLUSTER, "tine": {}}, ValueError, ["unknown key 'tine'", "did you mean 'time'?"]),
        ({**CLUSTER, "solver": {"device": "gpu"}}, ValueError, ["solver.device", "allowed: auto, cpu, cuda"]),
        ({**CLUSTER, "particles": [{"model": "file", "path": "none.csv"}]}, FileNotFoundError, ["none.csv"]),
        ({"grid": {"n": 32}}, ValueError, ["has a [grid]", "nbody run"]),
        ({**CLUSTER, "title": None}, TypeError, ["title is of type NoneType", "expected a number"]),
        ({**CLUSTER, "force": {"law": {1}}}, TypeError, ["force.law is of type set"]),
        ({1: 2}, TypeError, ["the key 1 is not a string"]),
        ("none.toml", FileNotFoundError, ["none.toml: no such scenario file"]),
        ("[time]\ndt = 1", ValueError, ["Simulation.from_toml"]),
        (b"s.toml", TypeError, ["bytes", "TOML file or a dict"]),
        (7, TypeError, ["int"]),
    ],
)
def test_mistakes(scenario, error, says):
    with pytest.raises(error) as raised:
        nbody_fmm.Simulation(scenario)
    assert all(part in str(raised.value) for part in says), str(raised.value)


def test_mistakes_are_those_of_the_command(program, tmp_path):
    wrong = {**CLUSTER, "time": {"dt": 0.03, "end": 0.1}, "force": {"law": "gravitiy"}}
    file = write(wrong, tmp_path / "s.toml")
    done = subprocess.run([program, "run", file], capture_output=True, text=True, timeout=60)
    with pytest.raises(ValueError) as raised:
        nbody_fmm.Simulation(file)
    assert done.returncode == 65 and str(raised.value).strip() == done.stderr.strip()
    with pytest.raises(ValueError) as raised:
        nbody_fmm.Simulation.from_toml(file.read_text())
    assert "[scenario:" in str(raised.value)


def test_files_of_particles(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.csv").write_text("x,y,z,mass,v_r\n0,0,0,1,0\n1,0,0,1,0\n")
    (tmp_path / "two.hdf5").write_bytes(b"not read")
    table = {"particles": [{"model": "file", "path": "two.csv"}], "time": {"dt": 0.01, "end": 1}}
    with pytest.warns(UserWarning, match="no columns vx, vy, vz.*v_r"):
        sim = nbody_fmm.Simulation(table)
    assert sim.positions.tolist() == [[0, 0, 0], [1, 0, 0]]
    with pytest.raises(ValueError, match="nbody convert two.hdf5 two.npy"):
        nbody_fmm.Simulation({**table, "particles": [{"model": "file", "path": "two.hdf5"}]})
    sim.run()
    assert sorted(os.listdir()) == ["two.csv", "two.hdf5"], "nothing is written"
    # Of a file, tables are in its folder.
    (tmp_path / "folder").mkdir()
    file = write({**table, "particles": [{"model": "file", "path": "four.csv"}]}, tmp_path / "folder" / "s.toml")
    (tmp_path / "folder" / "four.csv").write_text(
        "x,y,z,vx,vy,vz,mass\n" + "".join(f"{k},0,0,0,0,0,1\n" for k in range(4))
    )
    assert len(nbody_fmm.Simulation(file)) == 4


def test_steps_and_callbacks():
    sim, seen = nbody_fmm.Simulation(EIGHT), []
    assert (sim.steps, sim.time, sim.dt, len(sim)) == (0, 0.0, 0.01, 3)
    sim.step(4)
    sim.run(0.3, callback=lambda s: seen.append((s.steps, s.time)), every=10)
    assert seen == [(10, 0.1), (20, 0.2), (30, 0.3)]
    sim.run(0.35, callback=lambda s: seen.append(s.steps), every=10)
    assert len(seen) == 3 and sim.steps == 35
    sim.run(0.35)
    sim.run()
    assert (sim.steps, sim.time) == (100, 1.0)
    sim.run()
    sim.run(until=1.5)
    assert sim.time == 1.5 and "150" in repr(sim)
    solar = nbody_fmm.Simulation(
        {"units": {"system": "solar"}, "particles": [{"model": "kepler"}], "time": {"dt": "0.25 d", "end": "1 d"}}
    )
    solar.run("2 d")
    assert solar.steps == 8
    for wrong, says in [
        (lambda: sim.run(1.0), "until = 1 is before the present time; allowed: 1.5 or later"),
        (lambda: sim.run(float("nan")), "until = nan is not a time"),
        (lambda: sim.run(1.503), "not a whole number of steps of 0.01; use 1.5 or 1.51"),
        (lambda: sim.run("2 d"), 'until = "2 d" cannot be read as a time: .*nbody'),
        (lambda: sim.run(2, every=0), "every: 0; allowed: 1 or more"),
        (lambda: sim.step(-1), "count: -1; allowed: 0 to"),
        (lambda: sim.step(2**70), f"count: {2**70}; allowed: 0 to"),
        (lambda: nbody_fmm.Simulation(EIGHT, threads=0), "threads: 0 is outside 1 to 1024"),
    ]:
        with pytest.raises(ValueError, match=says):
            wrong()
    for wrong, says in [
        (lambda: sim.step(1.5), "count: 1.5 is not a whole number"),
        (lambda: sim.run([]), "until"),
        (lambda: sim.run(2, every="2"), "every: '2' is not a whole number"),
        (lambda: nbody_fmm.Simulation(5), "scenario: int; expected the name of a TOML file or a dict"),
        (lambda: nbody_fmm.Simulation(None), "scenario: NoneType; expected"),
    ]:
        with pytest.raises(TypeError, match=says):
            wrong()
    assert sim.steps == 150


def test_errors_of_callbacks_leave_whole_steps():
    def fail(sim):
        raise LookupError("enough")

    sim, other = nbody_fmm.Simulation(CLUSTER), nbody_fmm.Simulation(CLUSTER)
    with pytest.raises(LookupError, match="enough"):
        sim.run(callback=fail, every=4)
    assert sim.steps == 4
    sim.run()
    other.run()
    assert sim.positions.tobytes() == other.positions.tobytes()


def test_velocities_turned_around_lead_back():
    sim = nbody_fmm.Simulation({**CLUSTER, "solver": {"device": "cpu", "method": "direct"}})
    start = sim.positions
    sim.step(20)
    moved = np.abs(sim.positions - start).max()
    sim.velocities = -sim.velocities
    assert sim.diagnostics()["energy_error"] == 0
    sim.step(20)
    assert moved > 0.1 and np.abs(sim.positions - start).max() < 1e-12
    assert (sim.steps, sim.time) == (40, 0.4)


def test_positions_can_be_set():
    sim = nbody_fmm.Simulation(EIGHT)
    x = np.asfortranarray([[0, 0, 0], [1, 0, 0], [0, 2, 0]], dtype=">f4")
    sim.positions, sim.velocities = x, np.zeros((3, 3))
    assert sim.positions.tolist() == x.tolist() and sim.positions.flags.c_contiguous
    energy = -(1 + 0.5 + 1 / np.sqrt(5))
    assert np.isclose(sim.diagnostics()["total"], energy, rtol=1e-14)
    sim.positions[0] = 5
    assert sim.positions[0].tolist() == [0, 0, 0], "a copy"
    plane = nbody_fmm.Simulation(VORTICES)
    high = plane.positions + [0, 0, 1]
    for change, says in [
        (lambda: setattr(sim, "positions", np.zeros((2, 3))), "positions: 2 rows; expected 3, one for each particle"),
        (lambda: setattr(sim, "positions", np.zeros(3)), r"positions: shape \(3,\); expected real numbers of shape"),
        (
            lambda: setattr(sim, "velocities", [[0, 0, 0], [0, np.nan, 0], [0, 0, 0]]),
            r"velocities: row 1 \(counted from 0\) holds \[0.0, NaN, 0.0\], which is not finite",
        ),
        (
            lambda: setattr(plane, "positions", high),
            "positions: the third number of row 0 .* is 1; allowed in the plane: 0",
        ),
        (lambda: setattr(plane, "velocities", plane.velocities), "velocities: those of vortices"),
    ]:
        with pytest.raises(ValueError, match=says):
            change()
    assert np.isclose(sim.diagnostics()["total"], energy, rtol=1e-14), "refused values change nothing"
    for name in ["masses", "charges", "time", "steps"]:
        with pytest.raises(AttributeError):
            setattr(sim, name, 1)
    assert sim.charges is None and plane.charges.shape == (150,)


def test_states_that_are_not_finite():
    sim = nbody_fmm.Simulation(EIGHT)
    sim.velocities = [[1e308, 0, 0], [-1e308, 0, 0], [0, 0, 0]]
    sim.velocities = sim.velocities * 1.5
    with pytest.raises(ValueError, match="after step 0, time 0"):
        sim.run(1000)
    with pytest.raises(ValueError, match="failed within step 1"):
        sim.step()
    assert sim.steps == 0


def test_threads_share_a_simulation():
    alone, shared = nbody_fmm.Simulation(CLUSTER), nbody_fmm.Simulation(CLUSTER)
    alone.step(60)
    threads = [threading.Thread(target=shared.step, args=(20,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert shared.positions.shape == (200, 3)
    for thread in threads:
        thread.join()
    assert shared.steps == 60 and shared.positions.tobytes() == alone.positions.tobytes()


def run(script, folder, **options):
    file = folder / "script.py"
    file.write_text("import os, sys, numpy as np, nbody_fmm\n" + textwrap.dedent(script))
    return subprocess.Popen(
        [sys.executable, file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_positions_assigned_to_themselves_change_nothing():
    # In a vacuum the dipole counts, to which each ion adds the image of the box that it has moved to.
    scenario = {key: value for key, value in SALT.items() if key != "thermostat"}
    scenario["boundary"] = {**SALT["boundary"], "surroundings": "vacuum"}
    sim, other = nbody_fmm.Simulation(scenario), nbody_fmm.Simulation(scenario)
    velocities = np.random.default_rng(0).normal(scale=0.8, size=(len(sim), 3))
    for s in (sim, other):
        s.velocities = velocities
        s.step(100)
    total = sim.diagnostics()["total"]
    sim.positions = sim.positions
    assert sim.diagnostics()["total"] == total
    sim.step(5)
    other.step(5)
    assert sim.positions.tobytes() == other.positions.tobytes()


def test_looks_of_other_threads_do_not_wait_long():
    sim = nbody_fmm.Simulation(CLUSTER)
    sim.step(1)
    looks = []
    stepping = threading.Thread(target=sim.step, args=(8000,))
    stepping.start()
    while stepping.is_alive():
        looks.append(sim.steps)
    stepping.join()
    # A turn is far shorter than all steps.
    assert len(set(looks)) > 5, set(looks)


def test_wrong_times_and_names_are_refused():
    sim = nbody_fmm.Simulation(EIGHT)
    for until, error, message in [
        (b"2", TypeError, "until: b'2' is neither a number nor a text"),
        (True, TypeError, "until: True is neither a number nor a text"),
        (float("inf"), ValueError, "more than 1e15 steps; allowed: .* at most"),
        (1e300, ValueError, "more than 1e15 steps"),
    ]:
        with pytest.raises(error, match=message):
            sim.run(until)
    with pytest.raises(AttributeError):
        sim.postions = sim.positions
    with pytest.raises(TypeError, match="text: NoneType; expected TOML as a str"):
        nbody_fmm.Simulation.from_toml(None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_children_go_on(tmp_path):
    script = f"""
        sim = nbody_fmm.Simulation({CLUSTER!r}, threads=2)
        sim.step(50)
        child = os.fork()
        sim.step(50)
        sys.stdout.write(f"{{sim.steps}} {{np.abs(sim.positions).sum()!r}}\\n")
        sys.stdout.flush()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    """
    output, error = run(script, tmp_path).communicate(timeout=60)
    lines = output.splitlines()
    assert len(lines) == 2 and lines[0] == lines[1] and lines[0].startswith("100 "), output + error


def test_ctrl_c_ends_after_a_whole_step(tmp_path):
    script = f"""
        import signal
        # A shell has its background jobs ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        scenario = {CLUSTER!r}
        sim = nbody_fmm.Simulation(scenario)
        print("ready", flush=True)
        try:
            sim.step(10**9)
        except KeyboardInterrupt:
            other = nbody_fmm.Simulation(scenario)
            steps = sim.steps
            other.step(steps)
            assert 0 < steps < 10**9 and sim.time == steps / 100
            assert sim.positions.tobytes() == other.positions.tobytes()
            assert sim.diagnostics() == other.diagnostics()
            sim.step(3)
            other.step(3)
            assert sim.velocities.tobytes() == other.velocities.tobytes()
            print("interrupted")
    """
    process = run(script, tmp_path)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, error = process.communicate(timeout=60)
    assert output == "interrupted\n", output + error


def test_no_pickling_and_warnings_once():
    import pickle

    sim = nbody_fmm.Simulation(CLUSTER)
    with pytest.raises(TypeError):
        pickle.dumps(sim)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nbody_fmm.Simulation(CASES["automatic step"])
    assert [str(w.message)[:24] for w in caught] == ['time.dt = "auto" gives 0'] and caught[0].filename == __file__
