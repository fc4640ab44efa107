"""The driver of scripts/peers: particles, truth, rivals, ours at the same error, records and a table."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

WORKER = pathlib.Path(__file__).parent.parent / "crates/nbody/src/bench/rivals.py"
# Rival, settings by aimed error, and whether it has threads. No setting of the tree codes comes near the finer errors.
RIVALS = [
    ("FMM3D", {1e-3: [0.1, 0.01], 1e-6: [1e-4], 1e-9: [1e-7]}, False),
    ("pytreegrav", {1e-3: [0.4, -0.6]}, True),
    ("REBOUND", {1e-3: [0.3]}, False),
]
SAMPLE = 1000


def uniform(n):
    return np.random.default_rng(1).random((n, 3))


def plummer(n):
    """The inner 99.9 % of the mass, scale 1."""
    rng = np.random.default_rng(1)
    radius = ((0.999 * rng.random(n)) ** (-2 / 3) - 1) ** -0.5
    direction = rng.normal(size=(n, 3))
    return (radius / np.linalg.norm(direction, axis=1))[:, None] * direction


def lines(command):
    done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE)
    if done.returncode != 0:
        print(f"peers: {' '.join(map(str, command[:3]))} ended with {done.returncode}", file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Case:
    """One set of particles with the truth at a sample of them."""

    def __init__(self, folder, name, points):
        self.name, self.n, self.step = name, len(points), max(1, len(points) // SAMPLE)
        self.points, self.out = folder / "points", folder / "out"
        points.tofile(self.points)
        lines([sys.executable, WORKER, "direct", self.points, 1, 0, self.out, self.step])
        self.truth = np.fromfile(f"{self.out}-0").reshape(-1, 3)

    def errors(self, index):
        field = np.fromfile(f"{self.out}-{index}").reshape(-1, 3)[:: self.step]
        wrong, right = (np.linalg.norm(v, axis=1) for v in (field - self.truth, self.truth))
        return {
            "rms": float(np.sqrt(np.mean((wrong / right) ** 2))),
            "p99": float(np.quantile(wrong / right, 0.99)),
            "l2": float(np.linalg.norm(wrong) / np.linalg.norm(right)),
        }

    def rival(self, rival, threads, budget, settings):
        got = lines([sys.executable, WORKER, rival, self.points, threads, budget, self.out, *settings])
        return [{**one, **self.errors(i)} for i, one in enumerate(got)]

    def ours(self, example, threads, budget, tolerances):
        tolerances = [f"{t:.3e}" for t in tolerances]
        got = lines([example, self.points, threads, budget, self.out, *tolerances])
        return [{**one, **self.errors(i)} for i, one in enumerate(got)]

    def ours_at(self, example, threads, budget, errors):
        """Ours with the loosest tolerance of a ladder whose measured errors are at most these, in both norms."""
        most = os.cpu_count() or 1
        base = min(errors["rms"], errors["l2"])
        ladder = [min(0.1, base * f) for f in (4, 2.8, 2, 1.4, 1, 0.7, 0.5, 0.3)]
        tried = self.ours(example, most, 0, ladder)
        good = [t for t in tried if t["rms"] <= errors["rms"] and t["l2"] <= errors["l2"]]
        best = min(good, key=lambda t: t["seconds"][0], default=None)
        return best and self.ours(example, threads, budget, [best["tolerance"]])[0]


def row(record):
    ours = record["ours"]
    median = float(np.median(record["seconds"]))
    cells = [record["set"], f"{record['n']:.0e}", record["threads"], f"{record['aim']:.0e}", f"{record['rival']} {record['version']}"]
    cells += [f"{record['setting']:g}", f"{median:.3g}", f"{record['rms']:.1e} / {record['l2']:.1e}"]
    if ours is None:
        return cells + ["-", "none as good", "-"]
    mine = float(np.median(ours["seconds"]))
    return cells + [f"{mine:.3g}", f"{ours['rms']:.1e} / {ours['l2']:.1e}", f"{median / mine:.2f}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", default="1e5,1e6")
    parser.add_argument("--sets", default="uniform,plummer")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--budget", type=float, default=4.0)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/peers.jsonl"))
    parser.add_argument("--example", required=True)
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    head = ["set", "N", "threads", "aim", "rival", "setting", "its s", "its rms / L2", "our s", "our rms / L2", "ratio"]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder, given.out.open("a") as out:
        for n in (int(float(n)) for n in given.n.split(",")):
            for name in given.sets.split(","):
                case = Case(pathlib.Path(folder), name, {"uniform": uniform, "plummer": plummer}[name](n))
                known = {}
                for rival, aims, threaded in RIVALS:
                    for aim, settings in aims.items():
                        for threads in map(int, given.threads.split(",")):
                            # Without threads of its own a rival is as fast on two cores as on one.
                            key = (rival, aim, threads if threaded else 1)
                            if key not in known:
                                known[key] = case.rival(rival, key[2], given.budget, settings)
                            for its in known[key]:
                                ours = case.ours_at(given.example, threads, given.budget, its)
                                record = {"set": name, "n": n, "threads": threads, "aim": aim, "rival": rival, **its, "ours": ours}
                                out.write(json.dumps(record) + "\n")
                                out.flush()
                                print("| " + " | ".join(map(str, row(record))) + " |", flush=True)


main()
