"""The Transformer as decoding sees it: a `t2t_jax.types.StepModel`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.functional.masks import segments_of
from t2t_jax.model.cache import Cache, CrossKV, KVPair, empty_cache
from t2t_jax.model.input_defaults import check_positions
from t2t_jax.model.transformer import Transformer
from t2t_jax.types import Array, Params, PyTree


class Past(NamedTuple):
    """What the beams have read.

    Attributes:
      layers: for each layer, keys [B, H, W, length, Dk] and values [B, H, W, length,
        Dv].
      parents: [B, W] the beam of `layers` that each beam continues; None where beams
        were never reordered.
    """

    layers: tuple[KVPair, ...]
    parents: jax.Array | None = None


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["params"], meta_fields=["model"]
)
@dataclasses.dataclass(frozen=True)
class TransformerStepModel:
    """Binds a Transformer to its parameters.

    It is a pytree whose leaves are the parameters, so a jitted search takes it as an
    argument and compiles once for all checkpoints.

    Attributes:
      model: the module; static under `jit`.
      params: its parameters.

    Paper:
      §6.1: what beam search asks of a model.
    """

    model: Transformer
    params: Params = dataclasses.field(repr=False)

    @property
    def source_size(self) -> int:
        """The number of tokens that a source may hold."""
        config = self.model.config
        return config.source_vocab_size or config.vocab_size

    def encode(self, source_BxS: Array) -> CrossKV:
        """Reads source tokens once, up to each layer's keys and values.

        Args:
          source_BxS: [B, S] tokens; pad = 0. One sentence a row.

        Returns:
          Arrays that start with axis B, none repeated for beams.
        """
        memory: CrossKV = self._apply(_read, source_BxS)
        return memory

    def init_cache(self, memory: CrossKV, num_beams: int, length: int) -> Past:
        """Makes room for the past of every beam.

        Args:
          memory: from `encode`.

        Returns:
          Zeros.
        """
        batch = memory.segments.shape[0]
        return Past(
            empty_cache(self.model.config, batch, num_beams=num_beams, length=length)
        )

    def step(
        self, tokens_BxW: Array, memory: CrossKV, cache: Past, position: Array
    ) -> tuple[jax.Array, Past]:
        """Reads one token of every beam at `position`.

        Args:
          tokens_BxW: [B, W] tokens; bos at position 0.
          memory: from `encode`.
          cache: the past of every beam.
          position: scalar integer below the cache's length.

        Returns:
          logits: [B, W, V] float32, of the next token.
          cache: with this position added.
        """
        whole = Cache(memory, cache.layers, cache.parents)
        logits_BxWxV, whole = self._apply("step", tokens_BxW, whole, position)
        return logits_BxWxV, Past(whole.past, whole.parents)

    def reorder(self, cache: Past, parents_BxW: Array) -> Past:
        """Gives beam w of sentence b the past of beam `parents_BxW[b, w]`.

        Nothing is moved yet: the next step does that, while it adds its position.

        Args:
          cache: the past of every beam.
          parents_BxW: [B, W] beam numbers; W may differ from the cache's.

        Returns:
          The past of the new beams.
        """
        parents_BxW = jnp.asarray(parents_BxW, jnp.int32)
        if cache.parents is not None:
            parents_BxW = jnp.take_along_axis(cache.parents, parents_BxW, axis=1)
        return cache._replace(parents=parents_BxW)

    def grow(self, cache: Past, length: int) -> Past:
        """Makes room for `length` positions in all.

        Args:
          cache: the past of every beam.
          length: at least as many positions as there is room for already.

        Returns:
          The same past with zeros after it.

        Raises:
          ValueError: `length` would cut the past off.
        """
        check_positions(self.model.config, length)
        more = length - cache.layers[0].keys.shape[3]
        if more < 0:
            raise ValueError(
                f"length={length} must be at least the {length - more} positions that "
                "the cache has room for. Pass a greater length."
            )
        widths = ((0, 0), (0, 0), (0, 0), (0, more), (0, 0))
        grown: tuple[KVPair, ...] = jax.tree.map(
            lambda x: jnp.pad(x, widths), cache.layers
        )
        return cache._replace(layers=grown)

    def _apply(self, method: str | Callable[..., Any], *args: PyTree) -> Any:
        return self.model.apply({"params": self.params}, *args, method=method)


def _read(model: Transformer, source_BxS: Array) -> CrossKV:
    """Encodes, and projects the memory for the decoder, in one pass."""
    segments_BxS = segments_of(source_BxS)
    memory_BxSxD = model.encode(source_BxS, source_segments=segments_BxS)
    return model.decoder.project_memory(memory_BxSxD, segments_BxS)
