"""Searching and drawing in compiled chunks, between which the cache grows.

A cache with room for the longest output allowed makes every position pay for it. Here
it has room for 32 positions at first and grows only as far as an output really goes;
and where few sentences of a batch are left, these go on in a smaller batch.
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
from t2t_jax.decoding.search.static_params import Rules, SamplingParams
from t2t_jax.errors import UserError
from t2t_jax.types import Array, PyTree, StepModel

_CHUNK = 32
# So often it is looked whether all are done, and how many are not.
_LOOK = 8
# A batch of which at most one in so many sentences goes on becomes that much smaller,
# but not smaller than this: each size is a program to compile, and small ones cost more
# than they save.
_SHRINK = 2
_FEWEST = 16


def chunked_search(
    model: StepModel,
    source_BxS: Array,
    *,
    max_extra_tokens: int,
    rules: Rules,
    prefixes_BxP: Array | None = None,
    keys_BxK: Array | None = None,
) -> BeamResult:
    """Finds what `beam_search` finds, or `sample`, at the price of the longest output.

    A loop on the host over compiled chunks: not to be jitted itself. The programs are
    kept per shape of the source and structure of the model; new weights compile
    nothing, and a chunk is compiled when an output first reaches it.

    The rows are split over the devices that hold the model, of which each searches for
    itself.

    Paper: section 6.1.

    Args:
      model: a `StepModel` that is a pytree, its arrays at the leaves; where there are
        several devices, each holds all of it. The leaves of its cache start with axis
        B, as those of its memory do.
      source_BxS: [B, S] int tokens, pad after the end; B is a multiple of the devices.
      rules: how to search, or how to draw.
      keys_BxK: [B, K] uint32, the data of a PRNG key for each sentence, to draw with; a
        search has no use for them.

    Returns:
      The outputs of every sentence, on the host.

    Raises:
      UserError: `max_extra_tokens` is negative, the source is not [B, S] or cannot be
        split, the prefixes do not go with it, or there are no keys to draw with.
    """
    room = validated_max_length(
        source_BxS, prefixes_BxP, max_extra_tokens, ids=rules.ids
    )
    rows = np.shape(source_BxS)[0]
    given = {} if prefixes_BxP is None else {"prefixes_BxP": prefixes_BxP}
    if isinstance(rules, SamplingParams):
        if keys_BxK is None or len(keys_BxK) != rows:
            came = "None" if keys_BxK is None else f"{len(keys_BxK)} of them"
            raise UserError(
                f"To draw, keys_BxK must hold a key for each of {rows} rows, and is "
                f"{came}. Pass jax.random.key_data of as many keys."
            )
        given["keys_BxK"] = keys_BxK
    mesh, ends = devices_of(model), chunk_ends(room)
    memory, state = compiled_chunks.start(
        model,
        shard_rows(source_BxS, mesh),
        given={name: shard_rows(array, mesh) for name, array in given.items()},
        mesh=mesh,
        max_extra_tokens=max_extra_tokens,
        room=room,
        cache_length=ends[0],
        rules=rules,
    )
    return _Batch(model, memory, state, mesh=mesh, rules=rules).finish(ends)


class _Batch:
    """Sentences that are decoded together, fewer and fewer of them.

    All arrays begin with an axis for the devices; each keeps as many rows as the one
    that has most to do.
    """

    def __init__(
        self,
        model: StepModel,
        memory: PyTree,
        state: PyTree,
        *,
        mesh: Mesh,
        rules: Rules,
    ):
        self._model, self._memory, self._state = model, memory, state
        self._mesh, self._rules = mesh, rules
        self._found: BeamResult | None = None
        # Which row of the whole batch each row is, [devices, rows].
        rows = state.limits_B.shape[1]
        self._rows = np.tile(np.arange(rows), (mesh.size, 1))

    def finish(self, ends: tuple[int, ...]) -> BeamResult:
        """Goes on until nothing is left to gain, looking around every few steps."""
        begin = 0
        for end in ends:
            if begin:
                self._state = compiled_chunks.grow(
                    self._model, self._state, mesh=self._mesh, room=end
                )
            for position in (*range(begin + _LOOK, end, _LOOK), end):
                done_DxB = self._go_on(position)
                if done_DxB.all():
                    return self._result()
                self._shrink(~done_DxB)
            begin = end
        return self._result()

    def _go_on(self, position: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Takes the steps up to a position, and tells which sentences are done."""
        self._state, done = compiled_chunks.advance(
            self._model,
            self._state,
            memory=self._memory,
            until=np.int32(position),
            mesh=self._mesh,
            rules=self._rules,
        )
        return np.asarray(jax.device_get(done))

    def _result(self) -> BeamResult:
        self._keep()
        found: BeamResult = jax.tree.map(
            lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), self._found
        )
        return found

    def _shrink(self, goes_on_DxB: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        """Goes on with less, where few sentences of each device do."""
        rows, most = goes_on_DxB.shape[1], goes_on_DxB.sum(axis=1).max()
        fewer = rows
        while (smaller := -(-fewer // _SHRINK)) >= max(most, _FEWEST):
            fewer = smaller
        if fewer == rows:
            return
        self._keep()
        # Those that go on, and as many done ones as fill the rows up: they stay done.
        places = np.argsort(~goes_on_DxB, axis=1, kind="stable")[:, :fewer]
        self._rows = np.take_along_axis(self._rows, places, axis=1)
        self._memory, self._state = compiled_chunks.take(
            self._memory,
            self._state,
            shard_rows(places.reshape(-1), self._mesh),
            mesh=self._mesh,
        )

    def _keep(self) -> None:
        """Notes what has been found, on the host."""
        found = compiled_chunks.collect(self._state, mesh=self._mesh, rules=self._rules)
        if self._found is None:
            self._found = jax.tree.map(np.array, jax.device_get(found))
            return
        devices_Dx1 = np.arange(self._rows.shape[0])[:, None]
        for kept, new in zip(self._found, jax.device_get(found), strict=True):
            kept[devices_Dx1, self._rows] = new


def chunk_ends(max_length: int) -> tuple[int, ...]:
    """Chooses the positions at which decoding stops to let the cache grow.

    Every end is a program to compile, and every position attends to the whole cache.
    Chunks of 32 keep both small; beyond 256 positions they grow with the length, so
    that 1,074 positions need 16 programs instead of 34.

    Returns:
      Ends in ascending order, the last one `max_length`.

    Example:
      >>> chunk_ends(100)
      (32, 64, 96, 100)
    """
    ends = [min(_CHUNK, max_length)]
    while ends[-1] < max_length:
        chunk = _CHUNK * max(1, ends[-1] // (4 * _CHUNK))
        ends.append(min(ends[-1] + chunk, max_length))
    return tuple(ends)
