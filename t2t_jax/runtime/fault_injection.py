"""Faults that a test asks for: `T2T_JAX_FAULT=kind@step[:rank]`, and none unless set.

The kind is what happens (`raise`, `sleep`, `kill`, `stop`, `term`), alone for after a
training step, or with the place where it is to happen: `kill_saving`,
`term_evaluating`, `term_compiling`. `nan@7` makes the loss of step 7 no number, and
`nan@7-26` that of twenty steps. Without a rank it happens on every process.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from t2t_jax.distributed.processes import current_processes
from t2t_jax.errors import UserError

if TYPE_CHECKING:
    import jax

VARIABLE = "T2T_JAX_FAULT"
"""The environment variable that asks for a fault."""

_ACTIONS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}
_KINDS = ("raise", "sleep", *_ACTIONS, "nan")
_PLACES = ("training", "saving", "evaluating", "compiling")
_FORM = re.compile(r"([a-z]+)(?:_([a-z]+))?@(\d+)(?:-(\d+))?(?::(\d+))?")


class Fault(NamedTuple):
    """What is to go wrong, and when.

    Attributes:
      kind: one of raise, sleep, kill, stop, term and nan; "" is nothing.
      place: training (after a step), saving (a checkpoint has begun to be written),
        evaluating (before the first sentence is decoded) or compiling (the step).
      first: optimizer steps made when it happens first.
      last: optimizer steps made when it happens last; only `nan` happens twice.
      rank: of the process; None is each.
    """

    kind: str = ""
    place: str = "training"
    first: int = 0
    last: int = 0
    rank: int | None = None


@functools.cache
def requested() -> Fault:
    """Reads from the environment, once, which fault is wanted."""
    return parse(os.environ)


def parse(environ: Mapping[str, str]) -> Fault:
    """Reads which fault an environment asks for.

    Raises:
      UserError: it is none that there is.

    Example:
      >>> parse({"T2T_JAX_FAULT": "kill_saving@10:1"})
      Fault(kind='kill', place='saving', first=10, last=10, rank=1)
      >>> parse({}).kind
      ''
    """
    value = environ.get(VARIABLE, "")
    if not value:
        return Fault()
    match = _FORM.fullmatch(value)
    kind, place, first, last, rank = match.groups() if match else [""] * 5
    place = place or "training"
    several = kind == "nan"
    if (
        kind not in _KINDS
        or place not in _PLACES
        or (several and (place != "training" or rank))
        or (last and not several)
    ):
        raise UserError(
            f"{VARIABLE}={value} must be kind@step or kind@step:rank, with a kind of "
            f"{', '.join(_KINDS)}, and _saving, _evaluating or _compiling after it, "
            "but for nan. It is for tests; unset it."
        )
    return Fault(
        kind, place, int(first), int(last or first), int(rank) if rank else None
    )


def maybe_inject_fault(step: int, place: str = "training") -> None:
    """Lets happen here what was asked for, which is nothing but in tests.

    Args:
      place: one of `Fault.place`.

    Raises:
      RuntimeError: that is what was asked for.
    """
    fault = requested()
    if (fault.place, fault.first) != (place, step) or fault.kind in ("", "nan"):
        return
    if fault.rank not in (None, current_processes().index):
        return
    if fault.kind == "raise":
        raise RuntimeError(f"{VARIABLE} asked for this at step {step}.")
    while fault.kind == "sleep":
        time.sleep(1)
    os.kill(os.getpid(), _ACTIONS[fault.kind])


def maybe_inject_nan(loss: jax.Array, step: jax.Array) -> jax.Array:
    """Makes a loss no number at the steps asked for; to be called under `jax.jit`.

    Args:
      step: int32 scalar, updates made before this one.
    """
    fault = requested()
    if fault.kind != "nan":
        return loss
    import jax.numpy as jnp

    wanted = (step + 1 >= fault.first) & (step + 1 <= fault.last)
    return jnp.where(wanted, jnp.nan, 1.0) * loss
