"""From seconds to the figures of a report: rates, medians, shares, and the machine."""

from __future__ import annotations

import datetime
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from contest import Work

from t2t_jax.devices.processor import processor_name


def steps_for(seconds: float, step_seconds: float) -> int:
    """Counts the steps that a round of about so many seconds takes; at least one.

    Example:
      >>> steps_for(5.0, 0.6), steps_for(5.0, 60.0)
      (8, 1)
    """
    return max(1, round(seconds / step_seconds))


def step_figures(
    step_seconds: Sequence[float], work: Work, *, peak_tflops: float
) -> dict[str, Any]:
    """Makes figures of the time that a step took, in each round.

    Args:
      step_seconds: the mean of each round.
      work: what the step was.
      peak_tflops: of the device; 0 where it is not known.

    Returns:
      Figures of the median round, those of the best one, and the rounds themselves.
    """
    median, best = statistics.median(step_seconds), min(step_seconds)
    figures: dict[str, Any] = {
        "median_ms": 1e3 * median,
        "best_ms": 1e3 * best,
        "target_tokens_per_second": work.target_tokens / median,
        "best_target_tokens_per_second": work.target_tokens / best,
        "tflops": work.flops / median / 1e12,
        "rounds_ms": [round(1e3 * seconds, 3) for seconds in step_seconds],
    }
    if peak_tflops:
        figures["share_of_peak"] = figures["tflops"] / peak_tflops
    return figures


def text_figures(rounds: Sequence[tuple[float, int]]) -> dict[str, Any]:
    """Makes figures of training on real text.

    Args:
      rounds: seconds and real target tokens of each.
    """
    rates = [tokens / seconds for seconds, tokens in rounds]
    seconds, tokens = (sum(column) for column in zip(*rounds, strict=True))
    return {
        "target_tokens_per_second": statistics.median(rates),
        "best_target_tokens_per_second": max(rates),
        "overall_target_tokens_per_second": tokens / seconds,
        "target_tokens": tokens,
        "seconds": seconds,
    }


def compare(
    ours: dict[str, Any],
    peers: dict[str, dict[str, Any]],
    *,
    rate: str = "target_tokens_per_second",
) -> dict[str, Any]:
    """Sets our figures beside those of peers.

    Args:
      ours: with the rate.
      peers: by name, the one that matters most first.
      rate: what is compared; more of it is better.

    Returns:
      `ours`, `peers` and `ratios` (ours to theirs, of medians); and of the first peer,
      in the faster of its types, `peer` and `ratio`, None where there is none.
    """
    ratios = {name: ours[rate] / figures[rate] for name, figures in peers.items()}
    first = next(iter(peers), "").removesuffix("_bfloat16")
    types = [name for name in peers if name.removesuffix("_bfloat16") == first]
    best = min(types, key=ratios.__getitem__, default="")
    return {
        "ours": ours,
        "peers": peers,
        "peer": peers.get(best),
        "ratios": ratios,
        "ratio": ratios.get(best),
    }


def machine() -> dict[str, Any]:
    """Describes this machine as it is now; the load tells whether it is idle."""
    return {
        "cpu": processor_name(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
    }


def versions(names: Iterable[str]) -> dict[str, str]:
    """Looks up the versions of installed packages, and of Python."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in names},
    }


def peak_resident_megabytes(process: int | str = "self") -> float:
    """Returns the most memory that a process has held so far; on Linux.

    Args:
      process: its id; "self" is this one.

    Example:
      >>> peak_resident_megabytes() > 1
      True
    """
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kilobytes) * 1024 / 1e6
