"""The cache of a decoding: keys and values of the source and of earlier positions.

Those of self-attention are the past: what the beams of a search have decoded.

There are two layouts. Up to `MAX_SHARED_BEAMS`, all beams of a sentence attend to the
slots of all of them, masked to their own ancestors (`SharedPast`): a reordering of the
beams changes a table of integers. Moving the past itself at every position was a tenth
to a fifth of a search on a CPU. More beams have a past each (`OwnPast`), because
attention to those of all would cost more than moving them. Samples are beams that are
never reordered.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from t2t_jax.functional.attention import attention
from t2t_jax.model.config import TransformerConfig, decoder_layers
from t2t_jax.model.defaults import check_positions, past_dtype
from t2t_jax.types import Array

MAX_SHARED_BEAMS = 8
"""The most beams that share slots; with 12, attention costs about what is saved."""


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


class Position(NamedTuple):
    """The position that is decoded, alike for all layers.

    Attributes:
      number: scalar integer.
      mask: which entries each beam attends to, those of this one included: of shared
        slots [B, 1, W, L * W], otherwise [1, 1, 1, 1, L].
      parents: [B, W] the beam whose past each beam continues, where each has its own;
        None: itself.
    """

    number: Array
    mask: jax.Array
    parents: Array | None = None


class SharedPast(NamedTuple):
    """A layer's keys and values; beam w writes position p to slot p * W + w.

    Attributes:
      keys: [B, H, Dk, L * W]. The depth comes first, or a product with a few queries
        would transpose all keys at every position.
      values: [B, H, L * W, Dv].
    """

    keys: jax.Array
    values: jax.Array

    def append(
        self, keys_BxHxWxDk: jax.Array, values_BxHxWxDv: jax.Array, position: Position
    ) -> SharedPast:
        """Writes one position of every beam."""
        slot = position.number * keys_BxHxWxDk.shape[2]
        keys_BxHxDkxW = keys_BxHxWxDk.swapaxes(2, 3)
        return SharedPast(
            _write(self.keys, keys_BxHxDkxW, slot, axis=3),
            _write(self.values, values_BxHxWxDv, slot, axis=2),
        )

    def attend(self, q_BxHxWxDk: jax.Array, position: Position) -> jax.Array:
        """Attends from the position of each beam: context [B, H, W, Dv]."""
        keys_BxHxKxDk = self.keys.swapaxes(2, 3)  # no copy, see CrossKV.transposed
        context_BxHxWxDv = attention(
            q_BxHxWxDk.astype(self.keys.dtype),
            keys_BxHxKxDk,
            self.values,
            mask_xQxK=position.mask,
        )
        return context_BxHxWxDv.astype(q_BxHxWxDk.dtype)

    def grow(self, slots: int) -> SharedPast:
        """Adds slots, filled with zeros."""
        return SharedPast(
            jnp.pad(self.keys, ((0, 0), (0, 0), (0, 0), (0, slots))),
            jnp.pad(self.values, ((0, 0), (0, 0), (0, slots), (0, 0))),
        )


class OwnPast(NamedTuple):
    """A layer's keys and values, a set for each beam.

    Attributes:
      keys: [B, H, W, L, Dk].
      values: [B, H, W, L, Dv].
    """

    keys: jax.Array
    values: jax.Array

    def append(
        self, keys_BxHxWxDk: jax.Array, values_BxHxWxDv: jax.Array, position: Position
    ) -> OwnPast:
        """Reorders the past by `position.parents`, and writes one position."""
        return OwnPast(
            _reorder_and_write(self.keys, keys_BxHxWxDk, position),
            _reorder_and_write(self.values, values_BxHxWxDv, position),
        )

    def attend(self, q_BxHxWxDk: jax.Array, position: Position) -> jax.Array:
        """Attends from the position of each beam: context [B, H, W, Dv]."""
        context_BxHxWx1xDv = attention(
            q_BxHxWxDk[:, :, :, None].astype(self.keys.dtype),
            self.keys,
            self.values,
            mask_xQxK=position.mask,
        )
        return context_BxHxWx1xDv[:, :, :, 0].astype(q_BxHxWxDk.dtype)

    def grow(self, positions: int) -> OwnPast:
        """Adds positions, filled with zeros."""
        widths = ((0, 0), (0, 0), (0, 0), (0, positions), (0, 0))
        return OwnPast(jnp.pad(self.keys, widths), jnp.pad(self.values, widths))


LayerPast: TypeAlias = SharedPast | OwnPast


class Past(NamedTuple):
    """The past of all beams in all layers; every array starts with axis B.

    Attributes:
      layers: `SharedPast` or `OwnPast` of each layer, zeros where nothing is written.
      ancestors: of shared slots, [B, W, L] int32: the beam that wrote each position of
        a beam's past; otherwise None.
      parents: of beams with a past each, [B, W] int32: the beam whose past each beam
        continues, a reordering that the next position applies; None: itself.
    """

    layers: tuple[LayerPast, ...]
    ancestors: jax.Array | None = None
    parents: jax.Array | None = None

    @property
    def length(self) -> int:
        """The capacity in positions."""
        if self.ancestors is None:
            return self.layers[0].keys.shape[3]
        return self.ancestors.shape[2]

    @property
    def num_beams(self) -> int:
        """W."""
        if self.ancestors is None:
            return self.layers[0].keys.shape[2]
        return self.ancestors.shape[1]

    def reorder(self, parents_BxW: Array) -> Past:
        """Continues the beams `parents_BxW` of each sentence; no layer is moved yet."""
        parents_BxW = jnp.asarray(parents_BxW, jnp.int32)
        if self.ancestors is not None:
            return self._replace(
                ancestors=_gather(self.ancestors, parents_BxW[:, :, None])
            )
        if self.parents is not None:
            parents_BxW = _gather(self.parents, parents_BxW)
        return self._replace(parents=parents_BxW)

    def grow(self, length: int) -> Past:
        """Grows the capacity to `length` positions.

        Raises:
          ValueError: `length` is less than the present capacity.
        """
        more = length - self.length
        if more < 0:
            raise ValueError(
                f"length={length} must be at least the cache's capacity of "
                f"{self.length} positions. Pass a greater length."
            )
        if self.ancestors is None:
            return self._replace(
                layers=tuple(layer.grow(more) for layer in self.layers)
            )
        return Past(
            tuple(layer.grow(more * self.num_beams) for layer in self.layers),
            ancestors=jnp.pad(self.ancestors, ((0, 0), (0, 0), (0, more))),
        )

    def begin(self, number: Array) -> tuple[Position, Past]:
        """Begins a position.

        Args:
          number: scalar integer below `length`.

        Returns:
          position: for `append` and `attend` of every layer.
          past: with the order of the beams after it, and the layers before it.
        """
        is_past_L = jnp.arange(self.length) <= number
        beams_W = jnp.arange(self.num_beams, dtype=jnp.int32)
        if self.ancestors is not None:
            is_here_L = jnp.arange(self.length) == number
            ancestors_BxWxL = jnp.where(
                is_here_L[None, None], beams_W[None, :, None], self.ancestors
            )
            position = Position(number, ancestor_mask(ancestors_BxWxL, is_past_L))
            return position, self._replace(ancestors=ancestors_BxWxL)
        position = Position(number, is_past_L[None, None, None, None], self.parents)
        if self.parents is None:
            return position, self
        own_BxW = jnp.broadcast_to(beams_W[None], self.parents.shape)
        return position, self._replace(parents=own_BxW)


class Cache(NamedTuple):
    """The inputs of a decoding step besides parameters and tokens.

    Attributes:
      memory: for cross-attention, `transposed`; shared by all beams of a sentence.
      past: for self-attention.
    """

    memory: CrossKV
    past: Past


def empty_past(
    config: TransformerConfig, batch: int, *, num_beams: int, length: int
) -> Past:
    """Allocates the past of every beam and layer, for `length` target positions.

    Returns:
      Zeros of `past_dtype`.

    Raises:
      ValueError: there are fewer learned positions than `length`.
    """
    check_positions(config, length)
    dtype, heads, slots = past_dtype(config), config.num_heads, length * num_beams
    layers = range(decoder_layers(config))
    if num_beams > MAX_SHARED_BEAMS:
        shape = (batch, heads, num_beams, length)
        own = OwnPast(
            jnp.zeros((*shape, config.d_k), dtype),
            jnp.zeros((*shape, config.d_v), dtype),
        )
        return Past(tuple(own for _ in layers))
    shared = SharedPast(
        jnp.zeros((batch, heads, config.d_k, slots), dtype),
        jnp.zeros((batch, heads, slots, config.d_v), dtype),
    )
    ancestors_BxWxL = jnp.zeros((batch, num_beams, length), jnp.int32)
    return Past(tuple(shared for _ in layers), ancestors=ancestors_BxWxL)


def ancestor_mask(ancestors_BxWxL: Array, is_past_L: Array) -> jax.Array:
    """Returns which slots each beam attends to, [B, 1, W, L * W] bool.

    Example:
      Beam 0 descends from beam 1 at position 0; position 2 is yet to come.

      >>> ancestors = jnp.array([[[1, 0, 0], [1, 1, 0]]])
      >>> ancestor_mask(ancestors, jnp.array([True, True, False]))[0, 0].astype(int)
      Array([[0, 1, 1, 0, 0, 0],
             [0, 1, 0, 1, 0, 0]], dtype=int32)
    """
    batch, beams, length = ancestors_BxWxL.shape
    beams_1x1x1xW = jnp.arange(beams)[None, None, None]
    is_own_BxWxLxW = jnp.asarray(ancestors_BxWxL)[..., None] == beams_1x1x1xW
    mask_BxWxLxW = is_own_BxWxLxW & jnp.asarray(is_past_L)[None, None, :, None]
    return mask_BxWxLxW.reshape(batch, 1, beams, length * beams)


def _gather(of_beams: jax.Array, indices: Array) -> jax.Array:
    return jnp.take_along_axis(of_beams, jnp.asarray(indices), axis=1, mode="clip")


def _write(past: jax.Array, new: jax.Array, start: Array, *, axis: int) -> jax.Array:
    return jax.lax.dynamic_update_slice_in_dim(
        past, new.astype(past.dtype), start, axis=axis
    )


def _reorder_and_write(
    past_BxHxWxLxD: jax.Array, new_BxHxWxD: jax.Array, position: Position
) -> jax.Array:
    new_BxHxWx1xD = new_BxHxWxD[:, :, :, None]
    if position.parents is None:
        return _write(past_BxHxWxLxD, new_BxHxWx1xD, position.number, axis=3)
    # One pass that reorders and writes: with two, XLA copies the past three times a
    # position, between layouts.
    reordered_BxHxWxLxD = jnp.take_along_axis(
        past_BxHxWxLxD,
        jnp.asarray(position.parents)[:, None, :, None, None],
        axis=2,
        mode="clip",
    )
    is_here_L = jnp.arange(past_BxHxWxLxD.shape[3]) == position.number
    is_here_1x1x1xLx1 = is_here_L[None, None, None, :, None]
    return jnp.where(
        is_here_1x1x1xLx1,
        new_BxHxWx1xD.astype(past_BxHxWxLxD.dtype),
        reordered_BxHxWxLxD,
    )
