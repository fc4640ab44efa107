"""JAX and PyTorch behind one face, and direct sums written in them, which they differentiate by themselves."""

import numpy as np


class Jax:
    name = "jax"

    def __init__(self):
        import jax

        import nbody_fmm.jax

        jax.config.update("jax_enable_x64", True)
        self.jax, self.xp, self.erfc, self.sums = jax, jax.numpy, jax.scipy.special.erfc, nbody_fmm.jax

    def array(self, values):
        return self.xp.asarray(values)

    def pull(self, f, arrays, weights):
        """The value of f and the gradients of weights . f in the arrays, all as NumPy arrays."""

        @self.jax.jit
        def all(weights, *arrays):
            value, back = self.jax.vjp(f, *arrays)
            return value, back(weights)

        value, gradients = all(self.array(weights), *map(self.array, arrays))
        return np.asarray(value), [np.asarray(g) for g in gradients]


class Torch:
    name = "torch"

    def __init__(self):
        import torch

        import nbody_fmm.torch

        self.xp, self.erfc, self.sums = torch, torch.erfc, nbody_fmm.torch

    def array(self, values):
        return self.xp.as_tensor(values)

    def pull(self, f, arrays, weights):
        tensors = [self.array(a).clone().requires_grad_() for a in arrays]
        value = f(*tensors)
        return value.detach().numpy(), [g.numpy() for g in self.xp.autograd.grad(value, tensors, self.array(weights))]


LIBRARIES = {"jax": Jax, "torch": Torch}

#: Potentials of a unit charge as functions of the squared distance, by the options of the sum.
KERNELS = {
    "laplace": ({}, lambda xp, r2: 1 / xp.sqrt(r2)),
    "yukawa": ({"kernel": "yukawa:3"}, lambda xp, r2: xp.exp(-3 * xp.sqrt(r2)) / xp.sqrt(r2)),
    "plummer": ({"softening": "plummer:0.1"}, lambda xp, r2: 1 / xp.sqrt(r2 + 0.01)),
    "p1": ({"softening": "p1:0.1"}, lambda xp, r2: (r2 + 0.015) / (r2 + 0.01) ** 1.5),
}


def direct(library, kernel, kept=None):
    """Potentials as a function of sources, strengths and perhaps targets; 0 in ``kept`` (N, N) leaves a pair out."""
    xp = library.xp

    def potential(x, q, y=None):
        d = (x if y is None else y)[:, None] - x[None]
        r2 = (d * d).sum(-1)
        weight = library.array(np.ones(tuple(r2.shape)) - (np.eye(len(x)) if y is None else 0))
        if kept is not None:
            weight = weight * library.array(kept)
        # A distance of 1 where nothing is summed.
        return (weight * kernel(xp, r2 + (1 - weight))) @ q

    return potential


def ewald(library, box, alpha=4.0, waves=8):
    """Potentials in a periodic box in tin foil, by Ewald's sum (alpha in units of 1 / length of a box of about 1)."""
    xp, box = library.xp, np.asarray(box)
    volume = box.prod()
    # The box itself is the middle one, 13.
    cells = np.indices((3, 3, 3)).reshape(3, -1).T - 1
    n = np.indices((2 * waves + 1,) * 3).reshape(3, -1).T - waves
    k = 2 * np.pi * n[(n != 0).any(axis=1)] / box
    k2 = (k**2).sum(axis=1)
    factor = 4 * np.pi / volume * np.exp(-k2 / (4 * alpha**2)) / k2

    def potential(x, q, y=None):
        at = x if y is None else y
        d, side = at[:, None] - x[None], library.array(box)
        # From the nearest image: rounding has no gradient.
        e = d - xp.round(d / side) * side + library.array((cells * box)[:, None, None])
        weight = np.ones(tuple(e.shape[:3]))
        weight[13] -= np.eye(len(x)) if y is None else 0
        r = xp.sqrt((e * e).sum(-1) + library.array(1 - weight))
        total = (library.array(weight) * library.erfc(alpha * r) / r).sum(0) @ q
        a, b = at @ library.array(k.T), x @ library.array(k.T)
        f = library.array(factor)
        total = total + xp.cos(a) @ (f * (q @ xp.cos(b))) + xp.sin(a) @ (f * (q @ xp.sin(b)))
        if y is None:
            total = total - 2 * alpha / np.pi**0.5 * q
        return total - np.pi * q.sum() / (alpha**2 * volume)

    return potential
