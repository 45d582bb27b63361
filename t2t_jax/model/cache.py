"""The cache of a decoding: keys and values of the source and of earlier positions."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.model.config import TransformerConfig, decoder_layers
from t2t_jax.model.defaults import check_positions, compute_dtype
from t2t_jax.types import Array


class KVPair(NamedTuple):
    """Projected keys and values of attention.

    Attributes:
      keys: [B, H, K, Dk], or [B, H, W, K, Dk] with one set per beam.
      values: [B, H, K, Dv], or [B, H, W, K, Dv].
    """

    keys: jax.Array
    values: jax.Array


class CrossKV(NamedTuple):
    """The memory's keys and values, projected once for each sentence.

    Attributes:
      layers: for each layer, keys [B, H, S, Dk] and values [B, H, S, Dv].
      segments: [B, S] the source's segment numbers.
    """

    layers: tuple[KVPair, ...]
    segments: jax.Array


class Cache(NamedTuple):
    """The inputs of a decoding step besides parameters and tokens.

    Attributes:
      memory: for cross-attention; shared by all beams of a sentence.
      past: for self-attention of each layer: keys [B, H, W, length, Dk] and values
        [B, H, W, length, Dv], zeros where nothing is written yet.
      parents: [B, W] the beam of `past` that each beam continues at the next step;
        None: its own.
    """

    memory: CrossKV
    past: tuple[KVPair, ...]
    parents: Array | None = None


def empty_cache(
    config: TransformerConfig, batch: int, *, num_beams: int, length: int
) -> tuple[KVPair, ...]:
    """Allocates the self-attention cache of every beam and layer.

    Returns:
      For each layer, zeros [B, H, W, length, Dk] and [B, H, W, length, Dv] in the
      compute dtype.

    Raises:
      ValueError: there are fewer learned positions than `length`.
    """
    check_positions(config, length)
    shape = (batch, config.num_heads, num_beams, length)
    dtype = compute_dtype(config)
    return tuple(
        KVPair(
            jnp.zeros((*shape, config.d_k), dtype),
            jnp.zeros((*shape, config.d_v), dtype),
        )
        for _ in range(decoder_layers(config))
    )


def identity_parents(parents_BxW: Array) -> jax.Array:
    """Returns each beam as its own parent, [B, W] int32."""
    beams_W = jnp.arange(parents_BxW.shape[1], dtype=jnp.int32)
    return jnp.broadcast_to(beams_W[None], parents_BxW.shape)
