"""Injects the fault that a test configures: `T2T_JAX_FAULT=kind@step[:rank]`.

The kind (`raise`, `sleep`, `kill`, `stop`, `term`) takes effect after a training step,
or in another phase if that is appended: `kill_saving`, `term_evaluating`,
`term_compiling`. `nan@7` makes all that step 7 computes NaN, and `nan@7-26` of twenty
steps. Without a rank the fault occurs on every process.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from t2t_jax.devices.distributed.processes import current_processes
from t2t_jax.errors import UserError

Step: TypeAlias = Callable[..., Any]

VARIABLE = "T2T_JAX_FAULT"
"""The environment variable that configures a fault."""

_ACTIONS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}
_NAN = re.compile(r"(nan)@(\d+)(?:-(\d+))?")
_FORM = re.compile(
    r"(raise|sleep|kill|stop|term)(?:_(saving|evaluating|compiling))?@(\d+)(?::(\d+))?"
)


class Fault(NamedTuple):
    """A fault to inject.

    Attributes:
      kind: raise, sleep, kill, stop, term or nan; "" injects nothing.
      phase: training (after a step), saving (while a checkpoint is being written),
        evaluating (before the first sentence is decoded) or compiling (the step).
      first: the first optimizer step at which it occurs.
      last: the last one; differs from `first` only for `nan`.
      rank: the process; None means every process.
    """

    kind: str = ""
    phase: str = "training"
    first: int = 0
    last: int = 0
    rank: int | None = None


@functools.cache
def configured_fault() -> Fault:
    """Parses the fault configured in the environment, once per process."""
    return parse(os.environ)


def parse(environ: Mapping[str, str]) -> Fault:
    """Parses the fault configured in an environment.

    Raises:
      UserError: the variable's value is invalid.

    Example:
      >>> parse({"T2T_JAX_FAULT": "kill_saving@10:1"})
      Fault(kind='kill', phase='saving', first=10, last=10, rank=1)
      >>> parse({}).kind
      ''
    """
    if not (value := environ.get(VARIABLE, "")):
        return Fault()
    if found := _NAN.fullmatch(value):
        kind, first, last = found.groups()
        return Fault(kind, first=int(first), last=int(last or first))
    if found := _FORM.fullmatch(value):
        kind, phase, step, rank = found.groups()
        of = int(rank) if rank else None
        return Fault(kind, phase or "training", int(step), int(step), of)
    raise UserError(
        f"{VARIABLE}={value} must be kind@step or kind@step:rank. Kinds: raise, sleep, "
        "kill, stop, term, nan; all but nan may be followed by _saving, _evaluating or "
        "_compiling. The variable is for tests. Unset it."
    )


def maybe_inject_fault(step: int, phase: str = "training") -> None:
    """Triggers the injected fault, if one is configured for this step (tests only).

    Raises:
      RuntimeError: the configured fault is `raise`.
    """
    fault = configured_fault()
    if (fault.phase, fault.first) != (phase, step) or fault.kind in ("", "nan"):
        return
    if fault.rank not in (None, current_processes().index):
        return
    if fault.kind == "raise":
        raise RuntimeError(f"Injected by {VARIABLE} at step {step}.")
    while fault.kind == "sleep":
        time.sleep(1)
    os.kill(os.getpid(), _ACTIONS[fault.kind])


def with_injected_nan(step: Step) -> Step:
    """Wraps a training step so that the configured ones return NaN (tests only).

    All floats are NaN then: loss, gradient norm, parameters and optimizer state.
    """
    if (fault := configured_fault()).kind != "nan":
        return step
    import jax
    import jax.numpy as jnp

    def faulty_step(state: Any, *arguments: Any) -> Any:
        number = state.step + 1
        is_nan = (number >= fault.first) & (number <= fault.last)

        def spoiled(x: Any) -> Any:
            is_float = jnp.issubdtype(jnp.result_type(x), jnp.floating)
            return jnp.where(is_nan, jnp.nan, x) if is_float else x

        return jax.tree.map(spoiled, step(state, *arguments))

    return faulty_step
