"""Damages files at random, to read them all the same."""

import numpy as np

from t2t_jax.errors import UserError


def mutated(content, rng):
    """Cuts a file off, changes a few bytes, or repeats a part of it."""
    damaged = bytearray(content)
    kind = rng.integers(4)
    if kind == 0:
        del damaged[rng.integers(len(damaged)) :]
    elif kind == 1:
        begin, end = sorted(rng.integers(len(damaged), size=2))
        damaged[begin:end] = damaged[begin:end] * 2
    for _ in range(rng.integers(1, 4) if kind else 0):
        damaged[rng.integers(len(damaged))] = rng.integers(256)
    return bytes(damaged)


def check_mutations(path, read, *, number=200, seed=7):
    """Calls `read` with mutations of a file in its place; returns how many it refuses.

    It may raise nothing but a `UserError` of moderate length.
    """
    intact, rng = path.read_bytes(), np.random.default_rng(seed)
    messages = []
    for _ in range(number):
        path.write_bytes(mutated(intact, rng))
        try:
            read()
        except UserError as error:
            messages.append(str(error))
    path.write_bytes(intact)
    assert max(map(len, messages), default=0) < 2_000
    return len(messages)
