"""Sinusoidal positional encoding: §3.5 of the paper."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.types import Array

LONGEST_PERIOD = 10_000
"""The wavelengths run from 2 pi to nearly this times 2 pi (§3.5)."""


def sinusoidal_positions(
    positions_xL: Array, d_model: int, *, rates: str = "paper"
) -> jax.Array:
    r"""Computes the sinusoidal encoding of each position: [..., L, D] float32.

    PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the same:
    sines and cosines are interleaved, each pair with its own wavelength.

    Args:
      positions_xL: [..., L] integers: positions inside the sentence, from 0. They are
        an argument because they restart at each sentence of a packed row.
      d_model: width of the model; even.
      rates: "paper", or "tensor2tensor" for the exponents i / (d_model / 2 - 1) of that
        program, with which Marian and fairseq compute theirs.

    Raises:
      ValueError: `d_model` is odd.

    Paper: §3.5.

    Departs:
      With `rates="tensor2tensor"` the last wavelength is 10,000 times 2 pi, which the
      paper names as the longest and its formula only approaches.

    Example:
      >>> sinusoidal_positions(jnp.array([0, 1]), 4).round(3).tolist()
      [[0.0, 1.0, 0.0, 1.0], [0.841..., 0.540..., 0.01..., 1.0]]
    """
    if d_model % 2:
        raise ValueError(
            f"d_model={d_model} must be even: positions are pairs of a sine and a "
            "cosine (§3.5). Change config.model.d_model."
        )
    angles = position_angles(positions_xL, d_model, rates=rates)
    pairs = jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)
    return pairs.reshape((*angles.shape[:-1], d_model))


def position_angles(
    positions_xL: Array, width: int, *, rates: str = "paper"
) -> jax.Array:
    """Computes pos / 10000^(2i / width) for each pair i: [..., L, width / 2] float32.

    Args:
      rates: as of `sinusoidal_positions`.
    """
    # The rates in NumPy's float64: their errors are multiplied by the position.
    i = np.arange(width // 2)
    exponents = {
        "paper": 2 * i / width,
        "tensor2tensor": i / max(width // 2 - 1, 1),
    }[rates]
    rates_I = np.power(float(LONGEST_PERIOD), -exponents).astype(np.float32)
    return jnp.asarray(positions_xL, jnp.float32)[..., None] * rates_I.reshape(
        (1,) * jnp.ndim(positions_xL) + (-1,)
    )
