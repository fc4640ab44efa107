"""Compares `nbody eval --kernel gauss:SIGMA` with scipy's kernel density estimate: check_density.py NBODY FOLDER."""

import subprocess
import sys

import numpy as np
from scipy.stats import gaussian_kde

nbody, folder = sys.argv[1:]
random = np.random.default_rng(1)
for d, n in [(1, 4000), (2, 3000), (3, 2000)]:
    points = random.normal(size=(n, d)) * 0.3 + random.integers(0, 2, size=(n, 1))
    places = random.uniform(-1, 2, size=(500, d))
    sigma = 0.15
    # scipy multiplies the covariance of the data; with whitened data its kernel is round.
    kde = gaussian_kde(points.T, bw_method=1.0)
    kde.covariance = sigma**2 * np.eye(d)
    kde.cho_cov = sigma * np.eye(d)
    kde.log_det = 2 * d * np.log(sigma) + d * np.log(2 * np.pi)
    expected = kde(places.T)
    np.save(f"{folder}/points.npy", points)
    np.save(f"{folder}/q.npy", np.full(n, 1 / (n * (2 * np.pi * sigma**2) ** (d / 2))))
    np.save(f"{folder}/places.npy", places)
    command = f"eval --sources points.npy --strengths q.npy --targets places.npy --kernel gauss:{sigma} --tolerance 1e-9"
    subprocess.run([nbody, *command.split(), "--output", "density.npy"], cwd=folder, check=True)
    density = np.load(f"{folder}/density.npy")["potential"]
    allowed = 1e-9 * (2 * np.pi * sigma**2) ** (-d / 2)
    error = np.abs(density - expected).max()
    assert error <= allowed + 1e-13 * expected.max(), (d, error, allowed)
    assert expected.max() > 0.1 * d
print("ok 3 densities as scipy's")
