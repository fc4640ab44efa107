"""Runs another code that Python can import on given particles: the worker of the comparison with other codes.

    rivals.py NAME POINTS THREADS BUDGET OUT SETTING...

POINTS holds N × 3 numbers (f64), all of mass 1/N. For codes in the plane the file strengths in the same
folder holds N numbers. For each SETTING the attraction at every particle is computed at least three times,
and until BUDGET seconds have elapsed. The field of the first time, N × 3 numbers (f64), is written to
OUT-<index>, and one JSON object a line gives the seconds of all times. Set-up that a user pays once
(compilation, copying particles into the code's own form) is outside of the times, the tree is inside.
"""
import importlib.metadata
import json
import os
import sys
import time

NAMES = ["FMM3D", "FMM2D", "pytreegrav", "REBOUND", "direct"]


def fmm3d(x, threads, settings):
    """Laplace FMM in double precision; the setting is its eps. The wheel has no threads. Its kernel is 1/(4 π r)."""
    import fmm3dpy
    import numpy as np

    charges = np.full(len(x), 1.0 / len(x))
    sources = np.asfortranarray(x.T)
    return lambda eps: fmm3dpy.lfmm3d(eps=eps, sources=sources, charges=charges, pg=2).grad.T * (4.0 * np.pi)


def fmm2d(x, threads, settings):
    """Logarithmic FMM in double precision; the setting is its eps. Potential and gradient of sum q log r."""
    import fmm2dpy
    import numpy as np

    sources = np.asfortranarray(x[:, :2].T)
    charges = np.fromfile(os.path.join(os.path.dirname(sys.argv[2]), "strengths"))

    def sum(eps):
        return fmm2dpy.rfmm2d(eps=eps, sources=sources, charges=charges, pg=2).grad

    # The gradient is minus our field, as attraction is; z is 0.
    sum.result = lambda grad: np.column_stack([np.real(grad).T, np.zeros(len(x))])
    return sum


def pytreegrav(x, threads, settings):
    """Barnes-Hut by numba; the setting is its opening angle, negative with quadrupoles."""
    import numba
    import numpy as np
    from pytreegrav import Accel

    numba.set_num_threads(threads)
    mass, none = np.full(len(x), 1.0 / len(x)), np.zeros(len(x))

    def sum(theta):
        return Accel(x, mass, none, theta=abs(theta), method="tree", quadrupole=theta < 0, parallel=threads > 1)

    for quadrupole in {theta < 0 for theta in settings}:  # The first call compiles.
        part = x[:2000]
        Accel(part, mass[:2000], none[:2000], theta=1.0, method="tree", quadrupole=quadrupole, parallel=threads > 1)
    return sum


def rebound(x, threads, settings):
    """Its tree code; the setting is its opening angle."""
    import ctypes

    import numpy as np
    import rebound

    sim = rebound.Simulation()
    sim.root_size = 2.01 * float(np.abs(x).max())
    sim.gravity = "tree"
    for p in x:
        sim.add(m=1.0 / len(x), x=p[0], y=p[1], z=p[2])
    layout = type(sim.particles[0])
    # The particles lie one after the other in memory.
    raw = np.frombuffer((layout * len(x)).from_address(ctypes.addressof(sim.particles[0])), dtype=np.uint8)
    columns = raw.reshape(len(x), ctypes.sizeof(layout))[:, layout.ax.offset : layout.ax.offset + 24]

    def sum(theta):
        sim.opening_angle2 = theta * theta
        rebound.clibrebound.reb_simulation_update_acceleration(ctypes.byref(sim))
        return columns

    sum.result = lambda columns: np.ascontiguousarray(columns).view(np.float64)
    return sum


def direct(x, threads, settings):
    """No rival but the truth: plain direct sums at every k-th particle, k the setting; one row a target."""
    import numpy as np

    def sum(step):
        rows = []
        for at in x[:: int(step)]:
            d = x - at
            r2 = np.einsum("ij,ij->i", d, d)
            r2[r2 == 0.0] = np.inf
            rows.append((r2**-1.5 / len(x)) @ d)
        return np.array(rows)

    return sum


MAKE = dict(zip(NAMES, [fmm3d, fmm2d, pytreegrav, rebound, direct]))
PACKAGE = dict(zip(NAMES, ["fmm3dpy", "fmm2dpy", "pytreegrav", "rebound", "numpy"]))


def main():
    name, points, threads, budget, out, *settings = sys.argv[1:]
    os.environ["OMP_NUM_THREADS"] = threads
    os.environ.setdefault("NUMBA_NUM_THREADS", str(max(int(threads), os.cpu_count() or 1)))
    import numpy as np

    x = np.fromfile(points).reshape(-1, 3)
    sum = MAKE[name](x, int(threads), [float(s) for s in settings])
    result = getattr(sum, "result", lambda a: a)
    for index, setting in enumerate(settings):
        seconds = []
        while len(seconds) < (1 if name == "direct" else 3) or np.sum(seconds) < float(budget) and len(seconds) < 20:
            start = time.perf_counter()
            field = sum(float(setting))
            seconds.append(time.perf_counter() - start)
            if len(seconds) == 1:
                np.ascontiguousarray(result(field), dtype=np.float64).tofile(f"{out}-{index}")
            if seconds[-1] > 2 * float(budget):
                break
        version = importlib.metadata.version(PACKAGE[name])
        print(json.dumps({"setting": float(setting), "version": version, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    try:
        main()
    except ImportError as missing:
        print(f"{sys.argv[1]} is absent: {missing}", file=sys.stderr)
        sys.exit(69)
