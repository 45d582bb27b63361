"""Optimizers written out from their definitions, in NumPy and float64.

`ScheduleFree` follows the definition in y and z that the authors' package has; the
program's own is in x and z.
"""

import numpy as np


class AdamW:
    """Loshchilov and Hutter (2019), with the weight decay times the learning rate."""

    def __init__(self, b1, b2, eps, decay=0.0):
        self.b1, self.b2, self.eps, self.decay = b1, b2, eps, decay
        self.n = self.m = self.v = 0

    def step(self, params, gradient, rate):
        self.n += 1
        self.m = self.b1 * self.m + (1 - self.b1) * gradient
        self.v = self.b2 * self.v + (1 - self.b2) * gradient**2
        m = self.m / (1 - self.b1**self.n)
        v = self.v / (1 - self.b2**self.n)
        return params - rate * (m / (np.sqrt(v) + self.eps) + self.decay * params)


class ScheduleFree:
    """Defazio et al. (2024), as in `schedulefree.AdamWScheduleFree` with r = 0."""

    def __init__(self, params, peak, warmup, b1, b2, eps, decay=0.0, power=2):
        self.y, self.z, self.v = params.copy(), params.copy(), np.zeros_like(params)
        self.peak, self.warmup, self.b1, self.b2 = peak, warmup, b1, b2
        self.eps, self.decay, self.power = eps, decay, power
        self.n, self.weights = 0, 0.0

    def step(self, gradient):
        self.n += 1
        rate = self.peak * min(1, self.n / self.warmup)
        self.weights += rate**self.power
        c = rate**self.power / self.weights
        self.v = self.b2 * self.v + (1 - self.b2) * gradient**2
        d = gradient / (np.sqrt(self.v / (1 - self.b2**self.n)) + self.eps)
        d += self.decay * self.y
        self.y = (1 - c) * self.y + c * self.z + rate * (self.b1 * (1 - c) - 1) * d
        self.z = self.z - rate * d

    @property
    def x(self):
        """What is evaluated."""
        return (self.y - (1 - self.b1) * self.z) / self.b1


class Muon:
    """Jordan (2024) with Nesterov's momentum, scaled as by Liu et al. (2025)."""

    def __init__(self, beta, eps, steps, rms, decay=0.0):
        self.beta, self.eps, self.steps = beta, eps, steps
        self.rms, self.decay = rms, decay
        self.n = self.m = 0

    def step(self, params, gradient, rate):
        """Updates a matrix [inputs, outputs]."""
        self.n += 1
        self.m = self.beta * self.m + (1 - self.beta) * gradient
        ahead = self.beta * self.m / (1 - self.beta ** (self.n + 1))
        now = (1 - self.beta) * gradient / (1 - self.beta**self.n)
        update = self.rms * max(params.shape) ** 0.5 * self.orthogonal(ahead + now)
        return params - rate * (update + self.decay * params)

    def orthogonal(self, x):
        x = x / (np.sqrt((x**2).sum()) + self.eps)
        for _ in range(self.steps):
            square = x @ x.T
            x = 3.4445 * x - 4.7750 * square @ x + 2.0315 * square @ square @ x
        return x
