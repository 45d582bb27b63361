"""Embeddings and the pre-softmax linear transformation: §3.4 of the paper."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from t2t_jax.functional.einsum import einsum_f32
from t2t_jax.types import Array


def embed(ids_x: Array, table_VxD: Array) -> jax.Array:
    """Looks up the vectors of ids, multiplied by sqrt(d_model).

    Args:
      ids_x: [...] ids from 0 to V - 1. An id outside the table gives NaN, so that a
        wrong vocabulary is detected at once.

    Paper: §3.4: "In the embedding layers, we multiply those weights by sqrt(d_model)."

    Example:
      >>> embed(jnp.array([1]), jnp.array([[0.0] * 4, [1.0, 2.0, 3.0, 4.0]])).tolist()
      [[2.0, 4.0, 6.0, 8.0]]
    """
    return jnp.take(table_VxD, ids_x, axis=0) * math.sqrt(table_VxD.shape[-1])


def logits(y_xD: Array, table_VxD: Array) -> jax.Array:
    """Computes the logits of every word: [..., V] float32.

    Args:
      table_VxD: [V, D] the pre-softmax matrix, cast to the dtype of `y_xD`.

    Paper:
      §3.4: the pre-softmax linear transformation, which shares the matrix of the
      embeddings and has no bias.

    Example:
      >>> logits(jnp.array([1.0, 2.0]), jnp.array([[1.0, 0.0], [1.0, 1.0]])).tolist()
      [1.0, 3.0]
    """
    # float32, since the loss subtracts logits from their log-sum-exp. One matrix
    # product of all tokens: with several leading axes XLA:CPU takes twice as long for
    # the gradients.
    y_LxD = jnp.asarray(y_xD).reshape(-1, y_xD.shape[-1])
    logits_LxV = einsum_f32("ld,vd->lv", y_LxD, table_VxD, dtype=jnp.float32)
    return logits_LxV.reshape(*y_xD.shape[:-1], -1)
