"""Two clusters of stars fall toward each other: a leapfrog in 15 lines, with the energy checked.

Units: G = 1, lengths in Plummer radii of a cluster, masses in masses of a cluster.
"""

import numpy as np

import nbody_fmm

rng = np.random.default_rng(3)


def plummer(n):
    """Positions and velocities of a Plummer sphere of mass and radius 1 in equilibrium, shape (n, 3)."""
    r = 1 / np.sqrt(rng.uniform(0.01, 0.99, n) ** (-2 / 3) - 1)
    direction = rng.normal(size=(2, n, 3))
    direction /= np.linalg.norm(direction, axis=2)[..., None]
    # Speeds of the local dispersion: the equilibrium is approximate.
    speed = np.sqrt(0.5 / np.sqrt(1 + r**2))
    return r[:, None] * direction[0], speed[:, None] * direction[1]


n, step = 500, 0.02
(x1, v1), (x2, v2) = plummer(n), plummer(n)
x = np.concatenate([x1 - [4, 0.5, 0], x2 + [4, 0.5, 0]])
v = np.concatenate([v1 + [0.3, 0, 0], v2 - [0.3, 0, 0]])
mass = np.full(2 * n, 1 / n)

# Options are read once, and a GPU stays open.
forces = nbody_fmm.Solver(softening="plummer:0.1", tolerance=1e-5)


def energy(x, v, sum):
    return 0.5 * mass @ (v**2).sum(axis=1) - 0.5 * mass @ sum.potential


sum = forces(x, mass)
start = energy(x, v, sum)
for k in range(50):
    # Gravity attracts: the acceleration is -G times the field of positive charges.
    v -= 0.5 * step * sum.field
    x += step * v
    sum = forces(x, mass)
    v -= 0.5 * step * sum.field

error = abs(energy(x, v, sum) / start - 1)
print(f"method {sum.choice['method']}, relative energy error {error:.1e} after {k + 1} steps")
assert error < 1e-3
