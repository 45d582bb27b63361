"""Contestants: programs that are timed in turns, each in a process of its own.

A process of its own gives each its own threads and its own memory, and lets nothing of
one change how the other is compiled or run. All are started before the first round, and
whoever is not asked waits at a pipe, so that the one that computes has the machine.

Nothing that imports JAX or PyTorch is imported here: what a contestant needs is
imported in its process, which begins with its own environment.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from t2t_jax.devices.huge_pages import request_huge_pages
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.counting import training_flops
from t2t_jax.training.config import TrainingConfig

# The threads of whoever was asked last may still look for work, for some milliseconds.
PAUSE_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Work:
    """What every contestant does alike.

    Attributes:
      config: of the model, dropout included.
      device: "cpu" or "gpu".
      rows: sentence pairs of a batch.
      length: tokens of each side of a pair; no slot is padding.
      pairs_per_row: pairs that share a row of ours; peers have one a row.
      threads: of a CPU.
      network: which peer it is, for a process that can be several.
      compiled: whether the peer's network goes through `torch.compile`.
      training: of our own step: label smoothing, and how a batch is taken apart.
      environment: variables that our own process begins with besides its parent's.
      text: what is read instead of made-up tokens; a `real_text.RealText`.
    """

    config: TransformerConfig
    device: str
    rows: int
    length: int
    pairs_per_row: int = 1
    threads: int = 1
    network: str = ""
    compiled: bool = False
    training: TrainingConfig = field(default_factory=TrainingConfig)
    environment: Mapping[str, str] = field(default_factory=dict)
    text: Any = field(default=None, repr=False)

    @property
    def target_tokens(self) -> int:
        """Target tokens of a step, all of them real."""
        return self.rows * self.length

    @property
    def flops(self) -> float:
        """Operations of a step by formula, whoever makes it."""
        of_a_pair = training_flops(
            self.config, source_length=self.length, target_length=self.length
        )
        return self.rows * sum(of_a_pair.values())


class ContestError(Exception):
    """A contestant could not do what it was asked for; it says what came instead."""


class Contestant:
    """An object in a process of its own, which is asked one thing at a time.

    Args:
      name: for messages.
      made_by: "module:class" of the object; it is made with `work` alone.
      work: what it is to do.
      environment: variables that are set before its process begins.

    Raises:
      ContestError: the object could not be made.
    """

    def __init__(
        self,
        name: str,
        *,
        made_by: str,
        work: Work,
        environment: Mapping[str, str],
    ):
        self._name = name
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, made_by, work))
        with _set(environment):
            self._process.start()
        theirs.close()
        try:
            self._answer()
        except BaseException:  # Ctrl-C too, or its process would be waited for
            self.close()
            raise

    def ask(self, question: str, *arguments: object) -> Any:
        """Calls a method of the object, and returns what it returns.

        Args:
          question: the method.
          arguments: its own.

        Raises:
          ContestError: it raised something, or the process has died.
        """
        with contextlib.suppress(BrokenPipeError):  # which the answer will tell
            self._pipe.send((question, arguments))
        return self._answer()

    def close(self) -> None:
        """Ends the process."""
        self._pipe.close()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def __enter__(self) -> Contestant:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _answer(self) -> Any:
        try:
            done, answer = self._pipe.recv()
        except (EOFError, ConnectionResetError) as error:
            self._process.join()
            raise ContestError(
                f"{self._name} has died, with exit code {self._process.exitcode}: "
                "memory may have run out."
            ) from error
        if not done:
            raise ContestError(f"{self._name} failed:\n{answer}")
        return answer


def take_turns(
    contestants: Mapping[str, Contestant],
    questions: Mapping[str, tuple[Any, ...]],
    *,
    rounds: int,
) -> dict[str, list[Any]]:
    """Asks all, one after the other, round by round.

    Args:
      contestants: by name; every other round goes from the last to the first, so that
        what drifts with time favours nobody.
      questions: of each, what `Contestant.ask` takes.
      rounds: how often.

    Returns:
      The answers of each, round by round.
    """
    answers: dict[str, list[Any]] = {name: [] for name in contestants}
    for number in range(rounds):
        names = list(contestants)
        for name in reversed(names) if number % 2 else names:
            time.sleep(PAUSE_SECONDS)
            answers[name].append(contestants[name].ask(*questions[name]))
    return answers


def environment_of(work: Work, *, ours: bool = True) -> dict[str, str]:
    """Returns the variables that a contestant's process begins with.

    Args:
      work: says where it computes.
      ours: whether it is this package, or a peer.
    """
    environment = {**os.environ, **work.environment} if ours else {}
    if ours:  # As the command line does; the programs of peers do not.
        request_huge_pages(environment)
    return {
        **environment,
        "JAX_PLATFORMS": "cuda" if work.device == "gpu" and ours else "cpu",
        # JAX would keep three quarters of a GPU for itself, and peers are on it too.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }


@contextlib.contextmanager
def _set(environment: Mapping[str, str]) -> Iterator[None]:
    """Sets variables for the processes that are started meanwhile."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield
    finally:
        for name in environment:
            os.environ.pop(name)
        os.environ.update(before)


def _serve(pipe: Connection, made_by: str, work: Work) -> None:
    """Is a contestant's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent closes the pipe.
    os.dup2(2, 1)  # stdout is for the report, whatever a library prints.
    if work.device == "cpu":
        # JAX makes as many threads as there are processors that it may use.
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[: work.threads])
    with contextlib.suppress(EOFError, BrokenPipeError):
        try:
            module, name = made_by.split(":")
            served = getattr(importlib.import_module(module), name)(work)
            pipe.send((True, None))
            while True:
                question, arguments = pipe.recv()
                pipe.send((True, getattr(served, question)(*arguments)))
        except (EOFError, BrokenPipeError):
            raise
        except Exception:
            pipe.send((False, traceback.format_exc()))
