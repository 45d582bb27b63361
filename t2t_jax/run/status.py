"""The status of a run, read from its files; needs no JAX, and writes nothing.

So it can be read while the run trains, on any machine that has its directory.
"""

from __future__ import annotations

import math
import re
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from t2t_jax.checkpointing.step_dirs import Meta, StepDirs
from t2t_jax.config import Config
from t2t_jax.errors import UserError
from t2t_jax.files import locked, read_json_if_valid
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress_and_patience import Record, best_by
from t2t_jax.training.reporting.console import thinned
from t2t_jax.training.reporting.metrics_writer import read_metrics

_RECENT_RECORDS = 100
_CLOCK_TOLERANCE = 5.0
"""Seconds by which the two clocks of a process may drift between two records."""
_RECENT_SECONDS = 900.0
_OWNER = re.compile(r"process (\d+) on (\S+) since (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


def read_status(
    workdir: Workdir, *, now: float | None = None, is_over: bool = False
) -> dict[str, Any]:
    """Reads the status of a run or model.

    Args:
      now: seconds since the epoch; None is the current time.
      is_over: whether the training of this process has ended, though it still holds
        the lock.

    Returns:
      A JSON object. `state` is running, complete, stopped (by a signal, and saved),
      diverged, interrupted (ended without saving), preparing, not_started or model;
      `reason` is one sentence about it; `holder` is the process that has the lock, and
      null if there is none. What is not known is null.

    Raises:
      InputMissingError: the directory is not a run or a model.
      DataError: the configuration is missing or damaged.
    """
    now, unknown = time.time() if now is None else now, _unknown(workdir)
    if workdir.is_model:
        return unknown | _status_of_model(workdir)
    holder = None if is_over else _holder(workdir)
    if not workdir.has_config and (holder or _is_prepared(workdir)):
        state, reason = "preparing", "its text is being prepared"
        if not holder:
            state = "not_started"
            reason = "its text was prepared, and training has not begun"
        return unknown | {"state": state, "reason": reason, "holder": holder, "step": 0}
    config, owner = workdir.read_config(), _owner(workdir)
    records, (newest, meta) = _records(workdir), _newest_checkpoint(workdir)
    last = records[-1] if records else {}
    has_begun = bool(last) or newest is not None
    state, reason = "running", "training" if has_begun else "before its first step"
    if holder is None:
        host = owner["host"]
        state, reason = _state_of_unlocked(config, last, meta, host=host, now=now)
        holder = {**owner, "is_verified": False} if state == "running" else None
    step = max(newest or 0, last.get("step", 0))
    percent = round(100 * min(step / config.steps, 1), 1)
    status = unknown | {"state": state, "reason": reason, "holder": holder}
    status |= {"step": step, "steps": config.steps, "percent": percent}
    trained = _having(records, "train", "loss")
    seconds = _seconds_per_step(trained)
    status |= {"checkpoint": newest, **_metrics(records, trained, now=now)}
    status["seconds_per_step"] = seconds and round(seconds, 4)
    if state == "running" and seconds is not None:
        # Of a resumed run the last record is of the process before.
        times = last, {"time": (holder or {}).get("since")}
        since = max(0.0, now - max(map(_seconds, times)))
        left = max(0.0, (config.steps - last["step"]) * seconds - since)
        done = datetime.fromtimestamp(now + left, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status |= {"seconds_left": round(left), "done_at": done}
    return status


def _unknown(workdir: Workdir) -> dict[str, Any]:
    """Returns a status with every field, and nothing known."""
    fields = dict.fromkeys(
        "state reason holder step steps percent epoch checkpoint last_record "
        "record_age_seconds target_tokens_per_second seconds_per_step wall_seconds "
        "goodput seconds_left done_at loss evaluation best".split()
    )
    return {"workdir": str(workdir.path), **fields, "losses": [], "bleus": []}


def _status_of_model(workdir: Workdir) -> dict[str, Any]:
    origin = read_json_if_valid(workdir.path / "model.json")
    imported, averaged = origin.get("imported"), origin.get("averaged_steps")
    step, what = origin.get("step"), ""
    if imported:
        name = imported.get("format") if isinstance(imported, dict) else None
        what = f", imported from another toolkit ({name})" if name else ", imported"
    elif isinstance(averaged, list) and averaged:
        count = len(averaged)
        what = f", the average of {count} checkpoint{'s' * (count > 1)}"
    elif isinstance(step, int):
        what = f", exported at step {step:,}"
    reason = f"a model and not a run{what}; nothing trains here"
    return {"state": "model", "reason": reason, "step": step}


def _is_prepared(workdir: Workdir) -> bool:
    """Returns whether a start or `--mode=prepare` has written, and no run exists."""
    written = [(workdir.path / name).exists() for name in ("vocab.model", "data.json")]
    return any(written) and not StepDirs(workdir.checkpoints).steps()


def _state_of_unlocked(
    config: Config, last: Record, meta: Meta, *, host: str | None, now: float
) -> tuple[str, str]:
    """Returns the state of a run whose lock is free, and a sentence on it.

    Args:
      last: the last record; empty if there is none.
      host: of the last process that had the lock, by the lock file.
      meta: JSON object of the newest checkpoint, with its `step`; empty if there is
        none.
    """
    step, saved = last.get("step", 0), meta.get("step", 0)
    if not last and not meta:
        return "not_started", "no step has been made"
    is_early, patience = step < config.steps, config.evaluation.patience
    stale = meta.get("progress", {}).get("stale_evaluations", patience)
    # A complete run that is resumed to more steps has a final record, too.
    if last.get("kind") == "final" and (not is_early or 0 < patience <= stale):
        why = "evaluations without a better BLEU reached evaluation.patience"
        return "complete", f"ended early: {why}" if is_early else "done"
    if last and _has_diverged(last, config):
        return "diverged", f"updates were skipped up to step {step:,}"
    if "stopped" in meta.get("kinds", ()) and saved >= step:
        return "stopped", f"saved at step {saved:,}, where training resumes"
    is_elsewhere = host not in (None, socket.gethostname())
    if last and is_elsewhere and now - _seconds(last) < _RECENT_SECONDS:
        why = "by its records; the lock of another host cannot be seen from here"
        return "running", why
    where = f"at step {saved:,}" if saved else "from the start"
    why = f"ended without saving, as by a crash or kill -9; training resumes {where}"
    return "interrupted", why


def _has_diverged(last: Record, config: Config) -> bool:
    if last["kind"] != "skipped":
        return False
    is_finite = None not in (last.get("loss"), last.get("gradient_norm"))
    stops = config.training.on_nonfinite == "stop" and not is_finite
    return stops or last.get("in_a_row", 0) >= config.training.max_bad_steps


def _records(workdir: Workdir) -> list[Record]:
    """Reads the records of a run; [] if metrics.jsonl is not a regular file."""
    with suppress(UserError, OSError):
        records = read_metrics(workdir.path / "metrics.jsonl")
        return [record for record in records if isinstance(record["step"], int)]
    return []


def _having(records: list[Record], kind: str, name: str) -> list[Record]:
    """Returns the records of a kind that have a number."""
    found = (record for record in records if record["kind"] == kind)
    return [record for record in found if isinstance(record.get(name), int | float)]


def _seconds_per_step(trained: list[Record]) -> float | None:
    """Returns the wall-clock time of a step of the last process, evaluations included.

    Args:
      trained: training records, the last ones of which are looked at.
    """
    recent: list[Record] = []  # from the last one backwards
    for record in trained[: -_RECENT_RECORDS - 1 : -1]:
        if recent and not _same_process(record, recent[-1]):
            break
        recent.append(record)
    if not recent:
        return None
    last, first = recent[0], recent[-1]
    steps, seconds = last["step"] - first["step"], _elapsed(last) - _elapsed(first)
    return seconds / steps if steps > 0 and seconds > 0 else None


def _metrics(
    records: list[Record], trained: list[Record], *, now: float
) -> dict[str, Any]:
    train, last = trained[-1] if trained else {}, records[-1] if records else {}
    scored = _having(records, "eval", "bleu")
    evaluation = next((one for one in records[::-1] if one["kind"] == "eval"), None)
    losses, bleus = [one["loss"] for one in trained], [one["bleu"] for one in scored]
    pace = number(train, "target_tokens_per_second")
    return {
        "epoch": train.get("epoch"),
        "last_record": last.get("time"),
        "record_age_seconds": max(0, round(now - _seconds(last))) if last else None,
        "target_tokens_per_second": pace and round(pace, 1),
        **_goodput(train, evaluation or {}),
        "loss": train.get("loss"),
        "evaluation": _scores(evaluation),
        "best": _scores(max(scored, key=best_by, default=None)),
        "losses": [round(loss, 4) for loss in thinned(losses)],
        "bleus": [round(bleu, 2) for bleu in thinned(bleus)],
    }


def _goodput(train: Record, evaluation: Record) -> dict[str, Any]:
    """Returns the wall time of the last process by activity, and training's share.

    Args:
      train: its last record.
      evaluation: the last one, whose time a train record before it does not have.
    """
    wall, elapsed = train.get("wall_seconds"), _elapsed(train)
    if not isinstance(wall, dict) or elapsed <= 0:
        return {}
    wall = {name: seconds for name in wall if (seconds := number(wall, name))}
    if _seconds(evaluation) >= _seconds(train) and _elapsed(evaluation) > elapsed:
        seconds = number(evaluation, "seconds") or 0.0
        between = max(0.0, _elapsed(evaluation) - elapsed - seconds)
        wall["training"] = wall.get("training", 0.0) + between
        wall["evaluating"] = wall.get("evaluating", 0.0) + seconds
        elapsed = _elapsed(evaluation)
    wall = {"starting": max(0.0, elapsed - sum(wall.values())), **wall}
    share = wall.get("training", 0.0) / sum(wall.values())
    return {"wall_seconds": wall, "goodput": round(share, 4)}


def goodput_line(status: Mapping[str, Any]) -> str:
    """Returns training's share of the last process's time, and the rest's; or "".

    Example:
      >>> goodput_line({"goodput": 0.8, "wall_seconds": {"training": 8, "saving": 2}})
      'goodput 80 % (saving 20 %)'
    """
    wall = dict(status["wall_seconds"] or {})
    total, _ = sum(wall.values()), wall.pop("training", 0.0)
    shares = sorted((100 * wall[name] / total, name) for name in wall)[::-1]
    rest = ", ".join(f"{name} {share:.0f} %" for share, name in shares if share >= 0.5)
    line = f"goodput {100 * status['goodput']:.0f} %" if total else ""
    return line + f" ({rest})" * bool(rest)


def _scores(record: Record | None) -> dict[str, Any] | None:
    if record is None:
        return None
    names = ("step", "bleu", "chrf", "perplexity", "loss", *["f1"] * ("f1" in record))
    return {name: record.get(name) for name in names}


def _holder(workdir: Workdir) -> dict[str, Any] | None:
    """Returns the process that has locked a workdir; None if none has."""
    try:
        # Held for microseconds; `Workdir.locked` waits for longer.
        with locked(workdir.lock_path, is_shared=True):
            return None
    except BlockingIOError:
        return {**_owner(workdir), "is_verified": True}
    except OSError:  # There is no lock file, or locks are not supported.
        return None


def _owner(workdir: Workdir) -> dict[str, Any]:
    found = _OWNER.search(workdir.owner())
    values = (int(found[1]), found[2], found[3]) if found else (None,) * 3
    return dict(zip(("process", "host", "since"), values, strict=True))


def _newest_checkpoint(workdir: Workdir) -> tuple[int | None, Meta]:
    """Returns the newest checkpoint's step and its meta, unverified."""
    if not (steps := StepDirs(workdir.checkpoints).steps()):
        return None, {}
    path = workdir.checkpoints / str(steps[-1]) / "meta" / "metadata"
    return steps[-1], {**read_json_if_valid(path), "step": steps[-1]}


def _same_process(first: Record, second: Record) -> bool:
    """Returns whether one process wrote two records: its clocks agree."""
    passed = _elapsed(second) - _elapsed(first)
    wall = _seconds(second) - _seconds(first)
    return passed >= 0 and abs(passed - wall) < _CLOCK_TOLERANCE


def _elapsed(record: Record) -> float:
    return number(record, "elapsed") or 0.0


def _seconds(record: Record) -> float:
    """Returns the time of a record, in seconds since the epoch; 0 if unknown."""
    with suppress(TypeError, ValueError):
        return datetime.fromisoformat(record.get("time", "")).timestamp()
    return 0.0


def number(record: Mapping[str, Any], name: str) -> float | None:
    """Returns a field that is a finite number, else None.

    Example:
      >>> number({"loss": 2}, "loss"), number({"loss": None}, "loss")
      (2.0, None)
    """
    value = record.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if math.isfinite(value) else None
    return None


def training_seconds(record: Record) -> float:
    """Returns the seconds of training behind a `train` record; 0 if not known."""
    tokens = number(record, "target_tokens") or 0.0
    speed = number(record, "target_tokens_per_second") or 0.0
    return tokens / speed if speed > 0 else 0.0


def standing(
    workdir: Workdir, config: Config, records: list[Record], *, is_over: bool = False
) -> dict[str, Any]:
    """Finds out where a run stands.

    Args:
      records: from `report.curves.steps_of`.
      is_over: as for `read_status`.

    Returns:
      What `read_status` returns, with `minutes` of training so far, `step`
      and `steps` also of a model, and `state` and `reason` in words and as a sentence.

    Raises:
      UserError: not a run, or its configuration is damaged.
    """
    found = read_status(workdir, is_over=is_over)
    seconds = (training_seconds(one) for one in records if one["kind"] == "train")
    return found | {
        "step": max([found["step"] or 0, *(record["step"] for record in records)]),
        "steps": config.steps,
        "state": found["state"].replace("_", " "),
        "reason": f"{found['reason'][:1].upper()}{found['reason'][1:]}.",
        "minutes": sum(seconds) / 60,
    }
