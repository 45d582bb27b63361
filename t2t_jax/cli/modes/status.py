"""`--mode=status`: shows where a run is, without JAX and without writing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from t2t_jax.cli.flags.views import StatusOptions
from t2t_jax.errors import InputMissingError, UserError
from t2t_jax.quantities import format_duration
from t2t_jax.run.status import read_status
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.reporting.console import shows_sparklines, sparkline


def run(options: StatusOptions) -> int:
    """Prints the status of a run in five lines, or as JSON; returns 0.

    Raises:
      UserError: the workdir is not a run or a model, or its config.json is damaged.
    """
    status = _read(options.workdir)
    if options.format == "json":
        print(json.dumps(status, ensure_ascii=False))
        return 0
    for line in status_lines(status, plots=shows_sparklines(sys.stdout)):
        print(line)
    return 0


def _read(workdir: Workdir) -> dict[str, Any]:
    try:
        return read_status(workdir)
    except UserError as error:
        if not workdir.path.is_dir():
            raise
        from t2t_jax.exchange.importing.importer import explain_foreign

        if advice := explain_foreign(workdir.path):
            raise InputMissingError(
                f"{workdir.path} is not a run or a model of t2t_jax. {advice}"
            ) from error
        raise


def status_lines(status: Mapping[str, Any], *, plots: bool = False) -> Iterator[str]:
    """Formats a status; five lines for a run, one for a model.

    Args:
      status: from `t2t_jax.run.status.read_status`.
      plots: whether to plot losses and BLEU scores as blocks.
    """
    yield f"{status['workdir']}: {_headline(status)}"
    if status["state"] == "model":
        return
    yield f"  lock     {_holder(status['holder'])}"
    yield f"  speed    {_speed(status)}"
    yield f"  time     {_time(status)}"
    yield f"  quality  {_quality(status, plots=plots)}"


def _headline(status: Mapping[str, Any]) -> str:
    state = status["state"].replace("_", " ")
    if status["state"] == "model":
        return str(status["reason"])
    line = f"{state} ({status['reason']})"
    if status["steps"]:
        at_least = "at least " * (status["state"] == "running" and status["step"] > 0)
        line += f", {at_least}step {status['step']:,} of {status['steps']:,}"
        line += f" ({status['percent']:g} %)"
    return line


def _holder(holder: Mapping[str, Any] | None) -> str:
    if holder is None:
        return "not locked: no process trains here"
    if holder["process"] is None:
        return "locked by a process that cannot be identified"
    line = f"process {holder['process']} on {holder['host']} since {holder['since']}"
    return line if holder["is_verified"] else f"{line}, by the lock file alone"


def _speed(status: Mapping[str, Any]) -> str:
    tokens, seconds = status["target_tokens_per_second"], status["seconds_per_step"]
    if tokens is None:
        return "not measured yet"
    line = f"{tokens:,.0f} target tokens/s"
    if seconds is not None:
        line += f", {seconds:.2g} s a step with evaluations"
    return line


def _time(status: Mapping[str, Any]) -> str:
    age = status["record_age_seconds"]
    last = "no record yet"
    if age is not None:
        last = f"last record {format_duration(age)} ago ({status['last_record']})"
    if status["seconds_left"] is not None:
        left = format_duration(status["seconds_left"])
        return f"about {left} left, done at {status['done_at']}; {last}"
    return last


def _quality(status: Mapping[str, Any], *, plots: bool) -> str:
    if status["loss"] is None:
        return "no metrics yet"
    plot = f" {sparkline(status['losses'])}" * plots
    parts = [f"loss {status['loss']:.3f}{plot}"]
    evaluation, best = status["evaluation"], status["best"]
    key = "f1" if "f1" in (evaluation or {}) else "bleu"
    if evaluation is None:
        parts.append("no evaluation yet")
    elif evaluation["bleu"] is None:
        parts.append(f"BLEU not computed at step {evaluation['step']:,}")
    else:
        plot = f" {sparkline(status['bleus'])}" * (plots and key == "bleu")
        parts.append(
            f"development {key.upper()} {evaluation[key]:.2f}{plot} "
            f"at step {evaluation['step']:,}"
        )
    if best is not None:
        parts.append(f"best {best[key]:.2f} at step {best['step']:,}")
    return ", ".join(parts)
