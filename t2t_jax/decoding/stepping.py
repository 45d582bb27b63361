"""The loop that searching and sampling have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp

from t2t_jax.types import Array


class _State(Protocol):
    @property
    def position(self) -> Any: ...


State = TypeVar("State", bound=_State)


def take_steps(
    state: State,
    *,
    until: Array | int,
    step: Callable[[State], State],
    is_done: Callable[[State], jax.Array],
) -> State:
    """Takes steps until a position is reached, or every sentence is done.

    Args:
      state: where decoding stands; a pytree with a scalar `position`.
      until: position to stop at.
      step: makes the state one position later.
      is_done: tells of each sentence, [B] bool, whether it can gain nothing more.

    Returns:
      The state reached.
    """

    def goes_on(state: State) -> jax.Array:
        return jnp.asarray(state.position < until) & ~jnp.all(is_done(state))

    reached: State = jax.lax.while_loop(goes_on, step, state)
    return reached
