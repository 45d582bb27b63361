"""The curves of a run, from its records, thinned to a size that a page can hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from t2t_jax.run.status import number, training_seconds
from t2t_jax.training.progress_and_patience import Record, format_perplexity

T = TypeVar("T")
Point: TypeAlias = tuple[int, float]  # a step, and a value

NONE = "\N{EM DASH}"
MAX_POINTS = 1_200
"""Of one curve, after thinning."""

_MAX_KNOTS = 400
_MAX_MARKS = 400


class Chart(NamedTuple):
    """A chart of one or two curves.

    Attributes:
      key: the field of the records.
      kinds: of the records that have it: `train`, `eval`.
      scale: what the values are multiplied with.
    """

    key: str
    title: str
    unit: str
    kinds: tuple[str, ...]
    scale: float = 1.0


_BOTH, _TRAIN, _EVAL = ("train", "eval"), ("train",), ("eval",)
CHARTS = (
    Chart("loss", "Loss", "nats per target token, with label smoothing", _BOTH),
    Chart("nll", "NLL", "nats per target token, not smoothed", _BOTH),
    Chart("bleu", "Development BLEU", "percent", _EVAL),
    Chart("chrf", "Development chrF", "percent", _EVAL),
    Chart("learning_rate", "Learning rate", "of the last update", _TRAIN),
    Chart("gradient_norm", "Gradient norm", "L2, of the last update", _TRAIN),
    Chart("target_tokens_per_second", "Speed", "real target tokens a second", _TRAIN),
    Chart("padding_fraction", "Padding", "percent of token slots", _TRAIN, 100.0),
)


def figure(record: Mapping[str, Any] | None, name: str, digits: int = 2) -> str:
    """Formats a number of a record; as a dash where there is none."""
    if (value := number(record or {}, name)) is None:
        return NONE
    if name == "perplexity":
        return format_perplexity(value, digits=digits)
    return f"{value:.{digits}f}"


def steps_of(records: Iterable[Record]) -> list[Record]:
    """Returns the records with a valid step, in the order of steps."""
    valid = (r for r in records if type(r["step"]) is int and 0 <= r["step"] < 1 << 53)
    return sorted(valid, key=lambda record: record["step"])


def points_of(records: Iterable[Record], kind: str, name: str) -> list[Point]:
    """Collects the steps and values of a figure in the records of one kind."""
    every = ((r["step"], number(r, name)) for r in records if r["kind"] == kind)
    return [(step, value) for step, value in every if value is not None]


def curves(records: Sequence[Record], *, limit: int = MAX_POINTS) -> dict[str, Any]:
    """Collects the curves of a run for the page's scripts.

    Args:
      records: from `steps_of`.
      limit: points of a curve.

    Returns:
      JSON values: `curves` by chart and kind as lists of steps and of values; `axes`
      with steps and the tokens and minutes of training until then, between which the
      page interpolates; `skipped` steps; `thinned`, whether points were left out.
    """
    found: dict[str, Any] = {}
    thinned = False
    for chart in CHARTS:
        for kind in chart.kinds:
            points = points_of(records, kind, chart.key)
            kept = thin([(step, x * chart.scale) for step, x in points], limit)
            thinned |= len(kept) < len(points)
            if kept:
                found.setdefault(chart.key, {})[kind] = [
                    [step for step, _ in kept],
                    [rounded(value) for _, value in kept],
                ]
    skipped = [record["step"] for record in records if record["kind"] == "skipped"]
    marks = spread(skipped, _MAX_MARKS)
    return dict(curves=found, axes=_axes(records), skipped=marks, thinned=thinned)


def thin(points: Sequence[Point], most: int) -> Sequence[Point]:
    """Thins a curve to about `most` points that keep its shape.

    The points are divided into runs of equal number, and the lowest and the highest
    of each are kept: a spike of a single record stays visible.

    Example:
      >>> thin([(1, 0.0), (2, 9.0), (3, 1.0), (4, 1.5), (5, 1.2), (6, 0.1)], 4)
      [(1, 0.0), (2, 9.0), (4, 1.5), (6, 0.1)]
    """
    if len(points) <= most:
        return points
    size = math.ceil(2 * len(points) / max(most, 2))
    kept = {0, len(points) - 1}
    for start in range(0, len(points), size):
        part = range(start, min(start + size, len(points)))
        kept |= {min(part, key=lambda n: points[n][1])}
        kept |= {max(part, key=lambda n: points[n][1])}
    return [points[n] for n in sorted(kept)]


def rounded(value: float) -> float:
    """Rounds to five significant digits, which is what a page can show.

    Example:
      >>> rounded(3.2130229473), rounded(123456.0)
      (3.213, 123460.0)
    """
    return float(f"{value:.5g}")


def _axes(records: Sequence[Record]) -> dict[str, list[float]]:
    """Returns the tokens and minutes of training at some steps."""
    knots, tokens, seconds = [(0, 0.0, 0.0)], 0.0, 0.0
    for record in records:
        if record["kind"] == "train":
            tokens += number(record, "target_tokens") or 0.0
            seconds += training_seconds(record)
            knots.append((record["step"], tokens, seconds / 60))
    knots = spread(knots, _MAX_KNOTS)
    return {
        name: [rounded(knot[n]) if n else knot[n] for knot in knots]
        for n, name in enumerate(("step", "tokens", "minutes"))
    }


def spread(values: list[T], limit: int) -> list[T]:
    """Returns at most `limit` values, evenly spread, the first and last among them."""
    if len(values) <= limit:
        return values
    return [values[round(n * (len(values) - 1) / (limit - 1))] for n in range(limit)]
