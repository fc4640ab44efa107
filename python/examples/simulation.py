"""Two clusters of stars fall onto each other: a scenario run from Python, with its energy and radii on the way.

Units: G = 1, lengths in scale radii of a cluster, masses in masses of a cluster.
"""

import numpy as np

import nbody_fmm

cluster = {"model": "plummer", "n": 300}
scenario = {
    "particles": [
        {**cluster, "position": [-3, 0.5, 0], "velocity": [0.3, 0, 0]},
        {**cluster, "position": [3, -0.5, 0], "velocity": [-0.3, 0, 0]},
    ],
    "force": {"softening": {"kernel": "plummer", "length": 0.1}},
    "solver": {"tolerance": 1e-5},
    "time": {"dt": 0.02, "end": 6},
}
sim = nbody_fmm.Simulation(scenario)
first, second = slice(0, 300), slice(300, 600)


def show(sim):
    centers = [np.median(sim.positions[stars], axis=0) for stars in (first, second)]
    now = sim.diagnostics()
    print(
        f"time {sim.time:4.1f}: distance {np.linalg.norm(centers[0] - centers[1]):.2f}, "
        f"half of the mass within {now['lagrangian_50']:.2f}, energy error {now['energy_error']:+.1e}"
    )


sim.run(callback=show, every=50)
assert abs(sim.diagnostics()["energy_error"]) < 1e-3
