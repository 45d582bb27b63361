"""Searches and samples in compiled chunks, between which the cache grows.

With a cache for the longest output allowed, every position attends to all of it. Here
it starts with 32 positions and grows only as far as the outputs need; where few
sentences of a batch are left, decoding continues in a smaller batch.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from t2t_jax.decoding.engine import compiled_chunks
from t2t_jax.decoding.engine.device_rows import devices_of, shard_rows
from t2t_jax.decoding.search.beam_search import BeamResult
from t2t_jax.decoding.search.prefix_constraints import validated_max_length
from t2t_jax.decoding.search.static_params import SamplingParams, SearchParams
from t2t_jax.errors import UserError
from t2t_jax.types import Array, PyTree, StepModel

_CHUNK = 32
# Positions between two checks of which sentences are done.
_CHECK_EVERY = 8
# A batch shrinks by this factor while at most one in so many sentences is active, down
# to a minimum: each size is a program to compile, and small ones cost more than they
# save.
_SHRINK_FACTOR = 2
_MIN_ROWS = 16


def chunked_search(
    model: StepModel,
    source_BxS: Array,
    *,
    max_extra_tokens: int,
    search_params: SearchParams,
    prefixes_BxP: Array | None = None,
    keys_BxK: Array | None = None,
) -> BeamResult:
    """Runs `beam_search` or `sample` at the cost of the longest output only.

    A loop on the host over compiled chunks: do not jit it. The programs are cached per
    shape of the source and structure of the model; new weights compile nothing, and a
    chunk is compiled when an output first reaches it.

    The rows are split over the devices that hold the model.

    Paper: section 6.1.

    Args:
      model: a `StepModel` that is a pytree, replicated over its devices. The leaves of
        its memory and cache start with axis B.
      source_BxS: [B, S] int tokens, pad after the end; B is a multiple of the devices.
      keys_BxK: [B, K] uint32, the data of a PRNG key for each sentence; only for
        sampling.

    Returns:
      The outputs of every sentence, on the host.

    Raises:
      UserError: `max_extra_tokens` is negative, the source is not [B, S] or cannot be
        split, the prefixes do not match it, or the keys for sampling are missing.
    """
    max_length = validated_max_length(
        source_BxS, prefixes_BxP, max_extra_tokens, ids=search_params.ids
    )
    rows = np.shape(source_BxS)[0]
    batch_inputs = {} if prefixes_BxP is None else {"prefixes_BxP": prefixes_BxP}
    if isinstance(search_params, SamplingParams):
        if keys_BxK is None or len(keys_BxK) != rows:
            came = "None" if keys_BxK is None else f"{len(keys_BxK)} of them"
            raise UserError(
                f"To sample, keys_BxK must hold a key for each of {rows} rows, and is "
                f"{came}. Pass jax.random.key_data of as many keys."
            )
        batch_inputs["keys_BxK"] = keys_BxK
    mesh, ends = devices_of(model), chunk_ends(max_length)
    memory, state = compiled_chunks.start(
        model,
        shard_rows(source_BxS, mesh),
        batch_inputs={
            name: shard_rows(array, mesh) for name, array in batch_inputs.items()
        },
        mesh=mesh,
        max_extra_tokens=max_extra_tokens,
        max_length=max_length,
        cache_length=ends[0],
        search_params=search_params,
    )
    return _Batch(model, memory, state, mesh=mesh, search_params=search_params).finish(
        ends
    )


class _Batch:
    """The rows of a batch that are still decoded, on all devices.

    All arrays start with an axis for the devices; each device keeps as many rows as the
    one with the most active sentences.
    """

    def __init__(
        self,
        model: StepModel,
        memory: PyTree,
        state: PyTree,
        *,
        mesh: Mesh,
        search_params: SearchParams,
    ):
        self._model, self._memory, self._state = model, memory, state
        self._mesh, self._search_params = mesh, search_params
        self._results: BeamResult | None = None
        # The row of the original batch, [devices, rows].
        rows = state.limits_B.shape[1]
        self._rows = np.tile(np.arange(rows), (mesh.size, 1))

    def finish(self, ends: tuple[int, ...]) -> BeamResult:
        """Decodes until every sentence is done, checking every few positions."""
        begin = 0
        for end in ends:
            if begin:
                self._state = compiled_chunks.grow(
                    self._model, self._state, mesh=self._mesh, cache_length=end
                )
            for position in (*range(begin + _CHECK_EVERY, end, _CHECK_EVERY), end):
                done_DxB = self._advance(position)
                if done_DxB.all():
                    return self._result()
                self._shrink(~done_DxB)
            begin = end
        return self._result()

    def _advance(self, position: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Decodes up to a position; returns which sentences are done."""
        self._state, done = compiled_chunks.advance(
            self._model,
            self._state,
            memory=self._memory,
            until=np.int32(position),
            mesh=self._mesh,
            search_params=self._search_params,
        )
        return np.asarray(jax.device_get(done))

    def _result(self) -> BeamResult:
        self._store_results()
        results: BeamResult = jax.tree.map(
            lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), self._results
        )
        return results

    def _shrink(self, active_DxB: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        """Continues with fewer rows, where few sentences of each device are active."""
        rows, most = active_DxB.shape[1], active_DxB.sum(axis=1).max()
        fewer = rows
        while (smaller := -(-fewer // _SHRINK_FACTOR)) >= max(most, _MIN_ROWS):
            fewer = smaller
        if fewer == rows:
            return
        self._store_results()
        # The active ones, filled up with done ones, which stay done.
        indices = np.argsort(~active_DxB, axis=1, kind="stable")[:, :fewer]
        self._rows = np.take_along_axis(self._rows, indices, axis=1)
        self._memory, self._state = compiled_chunks.take(
            self._memory,
            self._state,
            shard_rows(indices.reshape(-1), self._mesh),
            mesh=self._mesh,
        )

    def _store_results(self) -> None:
        """Stores the current outputs, on the host."""
        results = compiled_chunks.collect(
            self._state, mesh=self._mesh, search_params=self._search_params
        )
        if self._results is None:
            self._results = jax.tree.map(np.array, jax.device_get(results))
            return
        devices_Dx1 = np.arange(self._rows.shape[0])[:, None]
        for kept, new in zip(self._results, jax.device_get(results), strict=True):
            kept[devices_Dx1, self._rows] = new


def chunk_ends(max_length: int) -> tuple[int, ...]:
    """Chooses the positions between which the cache grows, the last one `max_length`.

    Every end is a program to compile, and every position attends to the full cache.
    Chunks of 32 keep both small; beyond 256 positions they grow with the length, so
    that 1,074 positions need 16 programs instead of 34.

    Example:
      >>> chunk_ends(100)
      (32, 64, 96, 100)
    """
    ends = [min(_CHUNK, max_length)]
    while ends[-1] < max_length:
        chunk = _CHUNK * max(1, ends[-1] // (4 * _CHUNK))
        ends.append(min(ends[-1] + chunk, max_length))
    return tuple(ends)
