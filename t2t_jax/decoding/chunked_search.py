"""The beam search of `beam_search`, in compiled chunks between which the cache grows.

A cache with room for the longest output allowed makes every position pay for it. Here
it has room for 32 positions at first and grows only as far as an output really goes.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from t2t_jax.decoding.beam_search import BeamResult, collect
from t2t_jax.decoding.beam_step import (
    BeamRules,
    BeamState,
    advance,
    init_state,
    is_done,
)
from t2t_jax.decoding.devices import fetch_rows, mesh_of, on_each_device, split_rows
from t2t_jax.decoding.lengths import output_limits, output_room
from t2t_jax.types import Array, PyTree, StepModel

_CHUNK = 32


def chunked_beam_search(
    model: StepModel, source_BxS: Array, *, max_extra_tokens: int, rules: BeamRules
) -> BeamResult:
    """Finds what `beam_search` finds, at the price of the longest output found.

    A loop on the host over compiled chunks: not to be jitted itself. The programs are
    kept per shape of the source and structure of the model; new weights compile
    nothing, and a chunk is compiled when an output first reaches it.

    The rows are split over the devices that hold the model, of which each searches for
    itself.

    Paper: section 6.1.

    Args:
      model: a `StepModel` that is a pytree, its arrays at the leaves; where there are
        several devices, each holds all of it.
      source_BxS: [B, S] int tokens, pad after the end; B is a multiple of the devices.
      max_extra_tokens: as in `beam_search`.
      rules: what the search goes by.

    Returns:
      The `rules.n_best` outputs of every sentence, on the host.

    Raises:
      UserError: `max_extra_tokens` is negative, or the source is not [B, S] or cannot
        be split.
    """
    room = output_room(source_BxS, max_extra_tokens)
    ends = chunk_ends(room)
    mesh = mesh_of(model)
    memory, state = _start(
        model,
        split_rows(source_BxS, mesh),
        mesh=mesh,
        max_extra_tokens=max_extra_tokens,
        max_length=room,
        cache_length=ends[0],
        rules=rules,
    )
    for end in ends:
        state, done = _advance_chunk(
            model, state, memory=memory, mesh=mesh, until=end, rules=rules
        )
        if jax.device_get(done).all():
            break
    result: BeamResult = fetch_rows(_collect(state, mesh=mesh, rules=rules))
    return result


def chunk_ends(max_length: int) -> tuple[int, ...]:
    """Chooses the positions at which decoding stops to let the cache grow.

    Every end is a program to compile, and every position attends to the whole cache.
    Chunks of 32 keep both small; beyond 256 positions they grow with the length, so
    that 1,074 positions need 16 programs instead of 34.

    Args:
      max_length: the last position, T.

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


# Below, the leaves of `source`, `memory` and `state` are [devices, ...]: the parts of
# searches that run side by side.


@functools.partial(
    jax.jit,
    static_argnames=("mesh", "max_extra_tokens", "max_length", "cache_length", "rules"),
)
def _start(
    model: StepModel,
    source: Array,
    *,
    mesh: Mesh,
    max_extra_tokens: int,
    max_length: int,
    cache_length: int,
    rules: BeamRules,
) -> tuple[PyTree, BeamState]:
    def start(model: StepModel, source_BxS: Array) -> tuple[PyTree, BeamState]:
        memory = model.encode(source_BxS)
        limits_B = output_limits(
            source_BxS,
            max_extra_tokens=max_extra_tokens,
            max_length=max_length,
            ids=rules.ids,
        )
        state = init_state(
            model,
            memory,
            limits_B=limits_B,
            max_length=max_length,
            cache_length=cache_length,
            rules=rules,
        )
        return memory, state

    started: tuple[PyTree, BeamState] = on_each_device(start, mesh)(model, source)
    return started


@functools.partial(jax.jit, static_argnames=("mesh", "until", "rules"))
def _advance_chunk(
    model: StepModel,
    state: BeamState,
    *,
    memory: PyTree,
    mesh: Mesh,
    until: int,
    rules: BeamRules,
) -> tuple[BeamState, jax.Array]:
    def go_on(
        model: StepModel, part: tuple[PyTree, BeamState]
    ) -> tuple[BeamState, jax.Array]:
        memory, state = part
        state = state._replace(cache=model.grow(state.cache, until))
        state = advance(model, state, memory=memory, until=until, rules=rules)
        return state, jnp.all(is_done(state, rules=rules))

    reached: tuple[BeamState, jax.Array]
    reached = on_each_device(go_on, mesh)(model, (memory, state))
    return reached


@functools.partial(jax.jit, static_argnames=("mesh", "rules"))
def _collect(state: BeamState, *, mesh: Mesh, rules: BeamRules) -> BeamResult:
    collected: BeamResult = on_each_device(
        lambda _, part: collect(part, rules=rules), mesh
    )((), state)
    return collected
