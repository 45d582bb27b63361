"""Searches and samples in compiled chunks, between which the cache grows.

With a cache for the longest output allowed, every position attends to all of it. Here
it starts with as many positions as the sources have, and grows only as far as the
outputs need; where few sentences of a batch are left, decoding continues in a smaller
batch.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.sharding import Mesh

from t2t_jax.decoding.config import longest_output
from t2t_jax.decoding.engine.device_rows import (
    devices_of,
    gather_rows,
    per_device,
    shard_rows,
)
from t2t_jax.decoding.search import beam_search, sampling
from t2t_jax.decoding.search.beam_search import BeamResult
from t2t_jax.decoding.search.beam_state import BeamSearch
from t2t_jax.decoding.search.constraint import UNCONSTRAINED, Constraint
from t2t_jax.decoding.search.length_penalty import per_sentence_limits
from t2t_jax.decoding.search.sampling import Sampling
from t2t_jax.decoding.search.static_params import SamplingParams, SearchParams
from t2t_jax.types import Array, PyTree, StepModel

_CHUNK = 32
_LONGEST_FIRST_CHUNK = 128
# Positions between two checks of which sentences are done. A CPU gains at once from
# fewer rows; elsewhere the host's turn weighs more.
_CHECK_EVERY = 8
_CHECK_EVERY_ON_CPU = 2
# A batch shrinks by this factor while at most one in so many sentences is active, down
# to a minimum: each size is a program to compile, and small ones cost more than they
# save. With 2 and 16 a file of 1,000 captions took as many steps, and 3 programs more.
_SHRINK_FACTOR = 4
_MIN_ROWS = 8

Search: TypeAlias = BeamSearch | Sampling
_State: TypeAlias = Any


def chunked_search(
    model: StepModel,
    source_BxS: Array,
    *,
    max_extra_tokens: int,
    search_params: SearchParams,
    constraint: Constraint = UNCONSTRAINED,
    **batch_inputs: PyTree,
) -> BeamResult:
    """Runs `beam_search` or `sample` at the cost of the longest output only.

    A loop on the host over compiled chunks: do not jit it. The programs are cached per
    shape of the source and structure of the model; new weights compile nothing, and a
    chunk is compiled when an output first reaches it. Its arguments are not checked:
    the translator makes them.

    Paper: section 6.1.

    Args:
      model: a `StepModel` that is a pytree, replicated over its devices. The leaves of
        its memory and cache start with axis B.
      source_BxS: [B, S] int tokens, pad after the end; B is a multiple of the devices.
      constraint: of a beam search; not for sampling.
      batch_inputs: leaves [B, ...]: `prefixes_BxP`; `constraint_rows`, what the
        constraint has to know of each sentence; `allowed_BxC`, bool, which ids it may
        have, of a `RestrictedStepModel`; and for sampling `keys_BxK`, uint32,
        the data of a PRNG key for each sentence.

    Returns:
      The outputs of every sentence, on the host.

    Raises:
      UserError: B is not a multiple of the devices.
    """
    rows, length = np.shape(source_BxS)
    ratio = search_params.max_length_ratio
    max_length = longest_output(length, max_extra_tokens, max_length_ratio=ratio)
    if "prefixes_BxP" in batch_inputs:
        max_length = max(max_length, batch_inputs["prefixes_BxP"].shape[1] + 1)
    mesh, ends = devices_of(model), chunk_ends(max_length, length)
    search = make_search(model, search_params, constraint)
    inputs = (source_BxS, dict(batch_inputs))
    parts = jax.tree.map(lambda rows: shard_rows(rows, mesh), inputs)
    sizes = (max_extra_tokens, max_length, ends[0])
    memory, state = on_devices(start, mesh, sizes, search, parts)
    rows_DxB = np.tile(np.arange(rows // mesh.size), (mesh.size, 1))
    return _Batch(search, mesh, memory, state, rows_DxB).finish(ends)


@dataclasses.dataclass
class _Batch:
    """The rows of a batch that are still decoded, on all devices.

    All arrays start with an axis for the devices; each device keeps as many rows as the
    one with the most active sentences.
    """

    search: Search
    mesh: Mesh
    memory: PyTree
    state: _State
    rows_DxB: np.ndarray[Any, np.dtype[np.int_]]
    stored: _State | None = None  # on the host, of all rows, without the cache

    def finish(self, ends: tuple[int, ...]) -> BeamResult:
        """Decodes until every sentence is done, checking every few positions."""
        begin = 0
        for end in ends:
            if begin:
                self.state = self._run(grow, self.state, end)
            while begin < end:
                begin = self._next_check(begin, end)
                until = (self.search, np.int32(begin))
                self.state, done = advance(self.mesh, until, self.memory, self.state)
                done_DxB = np.asarray(jax.device_get(done))
                if done_DxB.all():
                    return self._results()
                self._shrink(~done_DxB)
        return self._results()

    def _next_check(self, begin: int, end: int) -> int:
        """Returns the next position at which the batch may shrink, or `end`."""
        if -(-self.rows_DxB.shape[1] // _SHRINK_FACTOR) < _MIN_ROWS:
            return end
        on_cpu = self.mesh.devices.flat[0].platform == "cpu"
        return min(begin + (_CHECK_EVERY_ON_CPU if on_cpu else _CHECK_EVERY), end)

    def _run(self, program: Callable[..., Any], parts: PyTree, *sizes: int) -> Any:
        return on_devices(program, self.mesh, sizes, self.search, parts)

    def _shrink(self, active_DxB: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        """Continues with fewer rows, where few sentences of each device are active."""
        rows, most = active_DxB.shape[1], active_DxB.sum(axis=1).max()
        fewer = rows
        while (smaller := -(-fewer // _SHRINK_FACTOR)) >= max(most, _MIN_ROWS):
            fewer = smaller
        if fewer == rows:
            return
        self._store()
        # The active ones, filled up with done ones, which stay done.
        indices = np.argsort(~active_DxB, axis=1, kind="stable")[:, :fewer]
        self.rows_DxB = np.take_along_axis(self.rows_DxB, indices, axis=1)
        kept = shard_rows(indices.reshape(-1), self.mesh)
        self.memory, self.state = self._run(take, (self.memory, self.state, kept))

    def _store(self) -> None:
        """Copies the state of the rows to the host, into that of all rows."""
        new = jax.device_get(self.state._replace(cache=()))
        if self.stored is None:
            self.stored = jax.tree.map(np.array, new)
            return
        devices_Dx1 = np.arange(self.rows_DxB.shape[0])[:, None]
        for kept, rows in zip(*map(jax.tree.leaves, (self.stored, new)), strict=True):
            if kept.ndim > 1:  # The position has no rows.
                kept[devices_Dx1, self.rows_DxB] = rows

    def _results(self) -> BeamResult:
        """Returns the outputs of all sentences, by one program for every size left."""
        self._store()
        results: BeamResult = gather_rows(self._run(collect, self.stored))
        return results


def chunk_ends(max_length: int, source_length: int) -> tuple[int, ...]:
    """Chooses the positions between which the cache grows, the last one `max_length`.

    Every end is a program to compile, and every position attends to the full cache. The
    first end is the length of the sources, from 32 to 128, which most outputs reach.
    Chunks of 32 follow; beyond 256 positions they grow with the length.

    Example:
      >>> chunk_ends(100, 16), chunk_ends(150, 100)
      ((32, 64, 96, 100), (100, 132, 150))
    """
    first = max(_CHUNK, min(source_length, _LONGEST_FIRST_CHUNK))
    ends = [min(first, max_length)]
    while ends[-1] < max_length:
        chunk = _CHUNK * max(1, ends[-1] // (4 * _CHUNK))
        ends.append(min(ends[-1] + chunk, max_length))
    return tuple(ends)


# The programs, each on the rows of one device.


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def on_devices(
    program: Callable[..., Any],
    mesh: Mesh,
    sizes: tuple[int, ...],
    shared: PyTree,
    parts: PyTree,
) -> Any:
    """Runs a program on every device.

    Args:
      program: `(*sizes, shared, part) -> result`.
      parts: leaves [devices, ...]: each device has its own rows.
    """
    return per_device(functools.partial(program, *sizes), mesh)(shared, parts)


def make_search(
    model: StepModel, params: SearchParams, constraint: Constraint = UNCONSTRAINED
) -> Search:
    """Returns what samples or searches, as its parameters ask for."""
    if isinstance(params, SamplingParams):
        return Sampling(model, params)
    return BeamSearch(model, params, constraint)


def _module(search: Search) -> ModuleType:
    """Returns the module whose functions advance the state of a search."""
    return sampling if isinstance(search, Sampling) else beam_search


def start(
    max_extra_tokens: int,
    max_length: int,
    cache_length: int,
    search: Search,
    part: tuple[Array, dict[str, PyTree]],
) -> tuple[PyTree, _State]:
    """Encodes the sources and initializes the decoding state: (memory, state)."""
    source_BxS, inputs = part
    allowed_BxC = inputs.get("allowed_BxC")
    source: Any = source_BxS if allowed_BxC is None else (source_BxS, allowed_BxC)
    memory = search.model.encode(source)
    bounds = {"max_extra_tokens": max_extra_tokens, "max_length": max_length}
    state = _module(search).init_state(
        search,
        memory,
        limits_B=per_sentence_limits(source_BxS, search.params, **bounds),
        max_length=max_length,
        cache_length=cache_length,
        **{name: rows for name, rows in inputs.items() if name != "allowed_BxC"},
    )
    return memory, state


def grow(cache_length: int, search: Search, state: _State) -> _State:
    """Grows the cache to `cache_length` positions."""
    return state._replace(cache=search.model.grow(state.cache, cache_length))


@functools.partial(jax.jit, static_argnums=(0,), donate_argnums=(3,))
def advance(
    mesh: Mesh, shared: tuple[Search, Array], memory: PyTree, state: _State
) -> tuple[_State, jax.Array]:
    """Decodes until a position, or until every sentence is done, on every device.

    Args:
      shared: the search, and the position, int32, traced: one program for all positions
        of a cache.
      state: donated.

    Returns:
      (state, [devices, B] bool: which sentences are done).
    """

    def on_device(
        shared: tuple[Search, Array], part: tuple[PyTree, _State]
    ) -> tuple[_State, jax.Array]:
        (search, until), (memory, state) = shared, part
        module = _module(search)
        state = module.advance(search, state, memory=memory, until=until)
        return state, module.is_done(search, state)

    return per_device(on_device, mesh)(shared, (memory, state))


def collect(search: Search, state: _State) -> BeamResult:
    """Reads the outputs of a state."""
    result: BeamResult = _module(search).collect(search, state)
    return result


def take(_: Search, part: tuple[PyTree, _State, Array]) -> tuple[PyTree, _State]:
    """Gathers rows of memory and state.

    Args:
      part: memory and state, and which of its rows a device keeps.
    """
    memory, state, kept_B = part
    taken: tuple[PyTree, _State] = jax.tree.map(
        # The position has no rows.
        lambda leaf: leaf[kept_B] if leaf.ndim else leaf,
        (memory, state),
    )
    return taken
