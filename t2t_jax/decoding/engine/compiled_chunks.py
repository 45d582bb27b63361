"""The compiled programs of `chunked_search`: of searching and of drawing alike.

The leaves of `source`, `memory` and `state` are [devices, ...]: the parts of searches
that run side by side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
from jax.sharding import Mesh

from t2t_jax.decoding.engine.device_rows import per_device
from t2t_jax.decoding.search import beam_search, sampling
from t2t_jax.decoding.search import beam_search as beam_step
from t2t_jax.decoding.search.beam_search import BeamResult
from t2t_jax.decoding.search.length_penalty import per_sentence_limits
from t2t_jax.decoding.search.static_params import Rules, SamplingParams
from t2t_jax.types import Array, PyTree, StepModel

_State: TypeAlias = Any


class _Kind(NamedTuple):
    """The four things that are done in chunks, of searching or of drawing."""

    init: Callable[..., _State]
    advance: Callable[..., _State]
    is_done: Callable[..., jax.Array]
    collect: Callable[..., BeamResult]


_SEARCH = _Kind(
    beam_step.init_state, beam_step.advance, beam_step.is_done, beam_search.collect
)
_DRAWING = _Kind(
    sampling.init_samples,
    sampling.sample_until,
    sampling.is_done,
    sampling.collect_samples,
)


def _kind(rules: Rules) -> _Kind:
    return _DRAWING if isinstance(rules, SamplingParams) else _SEARCH


@functools.partial(
    jax.jit,
    static_argnames=("mesh", "max_extra_tokens", "room", "cache_length", "rules"),
)
def start(
    model: StepModel,
    source: Array,
    *,
    given: Mapping[str, Array],
    mesh: Mesh,
    max_extra_tokens: int,
    room: int,
    cache_length: int,
    rules: Rules,
) -> tuple[PyTree, _State]:
    """Reads the sources and makes the state before the first token.

    Args:
      source: [devices, B, S] tokens.
      given: prefixes and keys, where there are any.
      room: T, tokens that an output may hold.
      cache_length: positions that the cache has room for at first.
      rules: of the search or of the draws.

    Returns:
      (memory, state), on each device.
    """

    def begin(
        model: StepModel, part: tuple[Array, Mapping[str, Array]]
    ) -> tuple[PyTree, _State]:
        source_BxS, given = part
        memory = model.encode(source_BxS)
        limits_B = per_sentence_limits(
            source_BxS,
            max_extra_tokens=max_extra_tokens,
            max_length=room,
            ids=rules.ids,
        )
        state = _kind(rules).init(
            model,
            memory,
            limits_B=limits_B,
            max_length=room,
            cache_length=cache_length,
            rules=rules,
            **given,
        )
        return memory, state

    started: tuple[PyTree, _State]
    started = per_device(begin, mesh)(model, (source, given))
    return started


@functools.partial(jax.jit, static_argnames=("mesh", "room"))
def grow(model: StepModel, state: _State, *, mesh: Mesh, room: int) -> _State:
    """Lets the cache grow.

    Args:
      room: positions that the cache has room for from here on.

    Returns:
      The state with that room.
    """
    return per_device(
        lambda model, state: state._replace(cache=model.grow(state.cache, room)), mesh
    )(model, state)


@functools.partial(
    jax.jit, static_argnames=("mesh", "rules"), donate_argnames=("state",)
)
def advance(
    model: StepModel,
    state: _State,
    *,
    memory: PyTree,
    until: Array,
    mesh: Mesh,
    rules: Rules,
) -> tuple[_State, jax.Array]:
    """Goes on until a position, or until all is done.

    Args:
      state: where decoding stands; its memory is used again.
      memory: from `start`.
      until: the position, int32: one program serves all that the cache has room for.
      rules: of the search or of the draws.

    Returns:
      (state, [devices, B] bool: which sentences are done).
    """
    kind = _kind(rules)

    def go_on(
        shared: tuple[StepModel, Array], part: tuple[PyTree, _State]
    ) -> tuple[_State, jax.Array]:
        (model, until), (memory, state) = shared, part
        state = kind.advance(model, state, memory=memory, until=until, rules=rules)
        return state, kind.is_done(state, rules=rules)

    reached: tuple[_State, jax.Array]
    reached = per_device(go_on, mesh)((model, until), (memory, state))
    return reached


@functools.partial(jax.jit, static_argnames=("mesh", "rules"))
def collect(state: _State, *, mesh: Mesh, rules: Rules) -> BeamResult:
    """Reads the outputs out of a state.

    Args:
      rules: of the search or of the draws.

    Returns:
      The outputs, all leaves [devices, B, ...].
    """
    kind = _kind(rules)
    collected: BeamResult = per_device(
        lambda _, part: kind.collect(part, rules=rules), mesh
    )((), state)
    return collected


@functools.partial(jax.jit, static_argnames=("mesh",))
def take(
    memory: PyTree, state: _State, places: Array, *, mesh: Mesh
) -> tuple[PyTree, _State]:
    """Picks the rows to go on with, on each device.

    Args:
      memory: from `start`.
      places: [devices, rows] which of its rows each device keeps.

    Returns:
      (memory, state) of these rows.
    """

    def pick_rows(
        _: PyTree, part: tuple[PyTree, _State, Array]
    ) -> tuple[PyTree, _State]:
        memory, state, places_B = part

        def pick(leaf: jax.Array) -> jax.Array:
            return leaf[places_B] if leaf.ndim else leaf  # the position has no rows

        taken: tuple[PyTree, _State] = jax.tree.map(pick, (memory, state))
        return taken

    picked: tuple[PyTree, _State] = per_device(pick_rows, mesh)(
        (), (memory, state, places)
    )
    return picked
