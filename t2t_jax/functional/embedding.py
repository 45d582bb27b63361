"""Embeddings and the pre-softmax linear transformation: §3.4 of the paper."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from t2t_jax.functional.einsum import einsum_f32
from t2t_jax.types import Array


def embed(ids_x: Array, table_VxD: Array, *, scaled: bool = True) -> jax.Array:
    """Looks up the vectors of ids, multiplied by sqrt(d_model).

    Args:
      ids_x: [...] ids from 0 to V - 1. An id outside the table, a negative one too,
        gives NaN, so that a wrong vocabulary is detected at once.
      scaled: whether to multiply by sqrt(d_model).

    Paper: §3.4: "In the embedding layers, we multiply those weights by sqrt(d_model)."

    Example:
      >>> embed(jnp.array([1]), jnp.array([[0.0] * 4, [1.0, 2.0, 3.0, 4.0]])).tolist()
      [[2.0, 4.0, 6.0, 8.0]]
    """
    # Unsigned: JAX would count negative ids from the end of the table.
    vectors_xD = jnp.take(table_VxD, jnp.asarray(ids_x).astype(jnp.uint32), axis=0)
    return vectors_xD * math.sqrt(table_VxD.shape[-1]) if scaled else vectors_xD


def logits(y_xD: Array, table_VxD: Array, bias_V: Array | None = None) -> jax.Array:
    """Computes the logits of every word: [..., V] float32.

    Args:
      table_VxD: [V, D] the pre-softmax matrix, cast to the dtype of `y_xD`.
      bias_V: [V] added to the logits; None for none.

    Paper:
      §3.4: the pre-softmax linear transformation, which shares the matrix of the
      embeddings and has no bias.

    Departs: A bias, which models of other toolkits have.

    Example:
      >>> logits(jnp.array([1.0, 2.0]), jnp.array([[1.0, 0.0], [1.0, 1.0]])).tolist()
      [1.0, 3.0]
    """
    # float32, since the loss subtracts logits from their log-sum-exp. One matrix
    # product of all tokens: with several leading axes XLA:CPU takes twice as long for
    # the gradients.
    y_LxD = jnp.asarray(y_xD).reshape(-1, y_xD.shape[-1])
    logits_LxV = einsum_f32("ld,vd->lv", y_LxD, table_VxD, dtype=jnp.float32)
    logits_xV = logits_LxV.reshape(*y_xD.shape[:-1], -1)
    if bias_V is None:
        return logits_xV
    return logits_xV + jnp.broadcast_to(bias_V, logits_xV.shape)
