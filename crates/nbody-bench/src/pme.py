"""Runs OpenMM's particle mesh Ewald on given charges: the worker of the comparison in periodic boxes.

    pme.py POINTS CHARGES SIDES PLATFORM THREADS BUDGET OUT TOLERANCE

POINTS holds N × 3 numbers (f64), CHARGES N, SIDES is LX,LY,LZ. PLATFORM is CPU or CUDA, whose precision is mixed.
For each of several cut-offs the mesh follows from TOLERANCE (ewaldErrorTolerance), and steps of a Verlet integrator
that moves nothing are timed: at least three, and until BUDGET seconds have elapsed. The fastest cut-off counts. Its
field, N × 3 numbers (f64), is written to OUT, and one JSON object gives seconds, cut-off, mesh and version.
"""
import json
import sys
import time

# Mean distances of neighbors; a mean distance is SPACING nm.
CUTOFFS = [1.8, 2.5, 3.2, 4.0]
SPACING = 0.28
# kJ/mol nm/e², as OpenMM has it.
COULOMB = 138.93545764498226


def main():
    points, charges, sides, platform, threads, budget, out, tolerance = sys.argv[1:]
    import numpy as np
    import openmm

    x, q = np.fromfile(points).reshape(-1, 3), np.fromfile(charges)
    sides = np.array([float(s) for s in sides.split(",")])
    scale = SPACING / (np.prod(sides) / len(x)) ** (1 / 3)
    box = [openmm.Vec3(*row) for row in np.diag(sides * scale)]
    best = None
    for cutoff in [c * SPACING for c in CUTOFFS if 2.001 * c * SPACING < min(sides) * scale]:
        system, force = openmm.System(), openmm.NonbondedForce()
        system.setDefaultPeriodicBoxVectors(*box)
        force.setNonbondedMethod(openmm.NonbondedForce.PME)
        force.setCutoffDistance(cutoff)
        force.setEwaldErrorTolerance(float(tolerance))
        for charge in q:
            system.addParticle(1.0)
            force.addParticle(charge, 1.0, 0.0)
        system.addForce(force)
        integrator = openmm.VerletIntegrator(1e-9)
        properties = {"Threads": threads} if platform == "CPU" else {"Precision": "mixed"}
        context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName(platform), properties)
        context.setPositions(x * scale)
        integrator.step(2)
        field = context.getState(getForces=True).getForces(asNumpy=True)._value / (COULOMB * q[:, None]) * scale**2
        seconds = []
        while len(seconds) < 3 or np.sum(seconds) < float(budget) and len(seconds) < 200:
            start = time.perf_counter()
            integrator.step(1)
            # Waits for the device.
            context.getState(getEnergy=False, getParameters=True)
            seconds.append(time.perf_counter() - start)
        mesh = force.getPMEParametersInContext(context)[1:]
        if best is None or np.median(seconds) < np.median(best[0]):
            best = (seconds, cutoff / SPACING, mesh, field)
    if best is None:
        sys.exit("the box is too small for a cut-off")
    seconds, cutoff, mesh, field = best
    np.ascontiguousarray(field).tofile(out)
    version = openmm.Platform.getOpenMMVersion()
    print(json.dumps({"seconds": seconds, "version": version, "cutoff": cutoff, "mesh": "×".join(map(str, mesh))}))


if __name__ == "__main__":
    try:
        main()
    except ImportError as missing:
        print(f"OpenMM is absent: {missing}", file=sys.stderr)
        sys.exit(69)
