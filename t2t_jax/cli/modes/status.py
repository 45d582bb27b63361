"""`--mode=status`: shows where a run is, without JAX and without writing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from t2t_jax.cli.flags.options import StatusOptions
from t2t_jax.cli.flags.parse_argv import explaining_foreign
from t2t_jax.quantities import format_duration
from t2t_jax.run.status import goodput_line, read_status


def run(options: StatusOptions) -> None:
    """Prints the status of a run in five lines, or as JSON.

    Raises:
      UserError: the workdir is not a run or a model, or its config.json is damaged.
    """
    with explaining_foreign({"workdir": options.workdir}):
        status = read_status(options.workdir)
    if options.format == "json":
        print(json.dumps(status, ensure_ascii=False))
    else:
        print("\n".join(status_lines(status)))


def status_lines(status: Mapping[str, Any]) -> Iterator[str]:
    """Formats a status; five lines for a run, one for a model.

    Args:
      status: from `t2t_jax.run.status.read_status`.
    """
    yield f"{status['workdir']}: {_headline(status)}"
    if status["state"] == "model":
        return
    yield f"  lock     {_holder(status['holder'])}"
    yield f"  speed    {_speed(status)}"
    yield f"  time     {_time(status)}"
    yield f"  quality  {_quality(status)}"


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
    return "; ".join(filter(None, [line, goodput_line(status)]))


def _time(status: Mapping[str, Any]) -> str:
    line, age = "", status["record_age_seconds"]
    if status["seconds_left"] is not None:
        left = format_duration(status["seconds_left"])
        line = f"about {left} left, done at {status['done_at']}; "
    if age is None:
        return f"{line}no record yet"
    return f"{line}last record {format_duration(age)} ago ({status['last_record']})"


def _quality(status: Mapping[str, Any]) -> str:
    if status["loss"] is None:
        return "no metrics yet"
    parts = [f"loss {status['loss']:.3f}"]
    scored, best = status["evaluation"], status["best"]
    key = "f1" if "f1" in (scored or {}) else "bleu"
    if scored is None:
        parts.append("no evaluation yet")
    else:
        shown = "not computed" if scored[key] is None else f"{scored[key]:.2f}"
        parts.append(f"development {key.upper()} {shown} at step {scored['step']:,}")
    if best is not None:
        parts.append(f"best {best[key]:.2f} at step {best['step']:,}")
    return ", ".join(parts)
