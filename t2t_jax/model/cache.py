"""What the decoder remembers from one step to the next, as explicit arrays."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.input_defaults import check_positions
from t2t_jax.model.platform import compute_dtype
from t2t_jax.types import Array


class KVPair(NamedTuple):
    """What attention looks at: projected once, looked at as often as needed.

    Attributes:
      keys: [B, H, K, Dk], or [B, H, W, K, Dk] where each beam has its own.
      values: [B, H, K, Dv], or [B, H, W, K, Dv].
    """

    keys: jax.Array
    values: jax.Array


class CrossKV(NamedTuple):
    """The memory as the decoder reads it: projected once for each sentence.

    Attributes:
      layers: for each layer, keys [B, H, S, Dk] and values [B, H, S, Dv].
      segments: [B, S] the source's segment numbers.
    """

    layers: tuple[KVPair, ...]
    segments: jax.Array


class Cache(NamedTuple):
    """All that a step of decoding needs besides the parameters.

    Attributes:
      memory: what the cross-attention looks at; one for all beams of a sentence.
      past: for each layer, what self-attention looks at: keys [B, H, W, length, Dk] and
        values [B, H, W, length, Dv], zeros where nothing has been read yet.
      parents: [B, W] the beam of `past` that each beam continues at the next step;
        None: its own.
    """

    memory: CrossKV
    past: tuple[KVPair, ...]
    parents: Array | None = None


def empty_cache(
    config: TransformerConfig, batch: int, *, num_beams: int, length: int
) -> tuple[KVPair, ...]:
    """Makes room for `length` target positions of every beam.

    Args:
      num_beams: W, number of beams a sentence.

    Returns:
      For each layer, zeros [B, H, W, length, Dk] and [B, H, W, length, Dv] in the
      compute dtype.

    Raises:
      ValueError: there are not so many learned positions.
    """
    check_positions(config, length)
    room = (batch, config.num_heads, num_beams, length)
    dtype = compute_dtype(config)
    return tuple(
        KVPair(
            jnp.zeros((*room, config.d_k), dtype),
            jnp.zeros((*room, config.d_v), dtype),
        )
        for _ in range(config.num_layers)
    )


def identity_parents(parents_BxW: Array) -> jax.Array:
    """Names each beam as its own parent.

    Args:
      parents_BxW: any numbers of beams, for their shape.

    Returns:
      [B, W] int32.

    Example:
      >>> identity_parents(jnp.array([[1, 1, 0]])).tolist()
      [[0, 1, 2]]
    """
    beams_W = jnp.arange(parents_BxW.shape[1], dtype=jnp.int32)
    return jnp.broadcast_to(beams_W[None], parents_BxW.shape)
