"""The compiled programs of `chunked_search`, for beam search and sampling.

The leaves of `source`, `memory` and `state` are [devices, ...]: each device decodes its
own rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
from jax.sharding import Mesh

from t2t_jax.decoding.engine.device_rows import per_device
from t2t_jax.decoding.search import beam_search, sampling
from t2t_jax.decoding.search.beam_search import BeamResult
from t2t_jax.decoding.search.length_penalty import per_sentence_limits
from t2t_jax.decoding.search.static_params import SamplingParams, SearchParams
from t2t_jax.types import Array, PyTree, StepModel

_State: TypeAlias = Any


class _SearchFunctions(NamedTuple):
    """The functions of beam search, or of sampling."""

    init: Callable[..., _State]
    advance: Callable[..., _State]
    is_done: Callable[..., jax.Array]
    collect: Callable[..., BeamResult]


_SEARCH = _SearchFunctions(
    beam_search.init_state,
    beam_search.advance,
    beam_search.is_done,
    beam_search.collect,
)
_SAMPLING = _SearchFunctions(
    sampling.init_sampling,
    sampling.sample_until,
    sampling.is_done,
    sampling.collect_samples,
)


def _functions(search_params: SearchParams) -> _SearchFunctions:
    return _SAMPLING if isinstance(search_params, SamplingParams) else _SEARCH


@functools.partial(
    jax.jit,
    static_argnames=(
        "mesh",
        "max_extra_tokens",
        "max_length",
        "cache_length",
        "search_params",
    ),
)
def start(
    model: StepModel,
    source: Array,
    *,
    batch_inputs: Mapping[str, Array],
    mesh: Mesh,
    max_extra_tokens: int,
    max_length: int,
    cache_length: int,
    search_params: SearchParams,
) -> tuple[PyTree, _State]:
    """Encodes the sources and initializes the decoding state.

    Args:
      batch_inputs: prefixes and keys, if any.
      max_length: T, capacity of the outputs.
      cache_length: initial capacity of the cache, in positions.

    Returns:
      (memory, state), on each device.
    """

    def begin(
        model: StepModel, part: tuple[Array, Mapping[str, Array]]
    ) -> tuple[PyTree, _State]:
        source_BxS, batch_inputs = part
        memory = model.encode(source_BxS)
        limits_B = per_sentence_limits(
            source_BxS,
            max_extra_tokens=max_extra_tokens,
            max_length=max_length,
            ids=search_params.ids,
        )
        state = _functions(search_params).init(
            model,
            memory,
            limits_B=limits_B,
            max_length=max_length,
            cache_length=cache_length,
            search_params=search_params,
            **batch_inputs,
        )
        return memory, state

    started: tuple[PyTree, _State]
    started = per_device(begin, mesh)(model, (source, batch_inputs))
    return started


@functools.partial(jax.jit, static_argnames=("mesh", "cache_length"))
def grow(model: StepModel, state: _State, *, mesh: Mesh, cache_length: int) -> _State:
    """Grows the cache to `cache_length` positions."""
    return per_device(
        lambda model, state: state._replace(
            cache=model.grow(state.cache, cache_length)
        ),
        mesh,
    )(model, state)


@functools.partial(
    jax.jit, static_argnames=("mesh", "search_params"), donate_argnames=("state",)
)
def advance(
    model: StepModel,
    state: _State,
    *,
    memory: PyTree,
    until: Array,
    mesh: Mesh,
    search_params: SearchParams,
) -> tuple[_State, jax.Array]:
    """Decodes until a position, or until every sentence is done.

    Args:
      state: donated.
      until: the position, int32, traced: one program for all positions of a cache.

    Returns:
      (state, [devices, B] bool: which sentences are done).
    """
    functions = _functions(search_params)

    def advance_device(
        shared: tuple[StepModel, Array], part: tuple[PyTree, _State]
    ) -> tuple[_State, jax.Array]:
        (model, until), (memory, state) = shared, part
        state = functions.advance(
            model, state, memory=memory, until=until, search_params=search_params
        )
        return state, functions.is_done(state, search_params=search_params)

    reached: tuple[_State, jax.Array]
    reached = per_device(advance_device, mesh)((model, until), (memory, state))
    return reached


@functools.partial(jax.jit, static_argnames=("mesh", "search_params"))
def collect(state: _State, *, mesh: Mesh, search_params: SearchParams) -> BeamResult:
    """Reads the outputs of a state; all leaves are [devices, B, ...]."""
    functions = _functions(search_params)
    collected: BeamResult = per_device(
        lambda _, part: functions.collect(part, search_params=search_params), mesh
    )((), state)
    return collected


@functools.partial(jax.jit, static_argnames=("mesh",))
def take(
    memory: PyTree, state: _State, indices: Array, *, mesh: Mesh
) -> tuple[PyTree, _State]:
    """Gathers rows of memory and state on each device.

    Args:
      indices: [devices, rows] which of its rows each device keeps.
    """

    def pick_rows(
        _: PyTree, part: tuple[PyTree, _State, Array]
    ) -> tuple[PyTree, _State]:
        memory, state, indices_B = part

        def pick(leaf: jax.Array) -> jax.Array:
            return leaf[indices_B] if leaf.ndim else leaf  # the position has no rows

        taken: tuple[PyTree, _State] = jax.tree.map(pick, (memory, state))
        return taken

    picked: tuple[PyTree, _State] = per_device(pick_rows, mesh)(
        (), (memory, state, indices)
    )
    return picked
