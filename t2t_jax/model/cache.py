"""The cache of a decoding: keys and values of the source and of earlier positions."""

from __future__ import annotations

from typing import NamedTuple

import jax

from t2t_jax.model.past import Past


class KVPair(NamedTuple):
    """Projected keys and values of attention.

    Attributes:
      keys: [B, H, K, Dk].
      values: [B, H, K, Dv].
    """

    keys: jax.Array
    values: jax.Array


class CrossKV(NamedTuple):
    """The memory's keys and values, projected once for each sentence.

    Attributes:
      layers: for each layer, keys [B, H, S, Dk] and values [B, H, S, Dv]; those of a
        `Cache` have keys [B, H, Dk, S].
      segments: [B, S] the source's segment numbers.
    """

    layers: tuple[KVPair, ...]
    segments: jax.Array

    def transposed(self) -> CrossKV:
        """Transposes the keys to [B, H, Dk, S].

        A product of a few queries with [B, H, S, Dk] transposes all keys at every
        position; where they lie like this, XLA takes their transpose as they are.
        """
        return self._replace(
            layers=tuple(
                layer._replace(keys=layer.keys.swapaxes(2, 3)) for layer in self.layers
            )
        )


class Cache(NamedTuple):
    """The inputs of a decoding step besides parameters and tokens.

    Attributes:
      memory: for cross-attention, `transposed`; shared by all beams of a sentence.
      past: for self-attention.
    """

    memory: CrossKV
    past: Past
