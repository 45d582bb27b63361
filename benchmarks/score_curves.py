"""Scores over the course of training: when each was reached, as a table and a plot."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from t2t_jax.evaluation.plots.figure import color_of, new_figure, render_png

_COLORS = "tab10"


class Point(NamedTuple):
    """An evaluation.

    Attributes:
      step: optimizer steps done.
      seconds: of training so far, without evaluation.
      bleu: of the development set, in percent.
      evaluation_seconds: of this evaluation alone.
    """

    step: int
    seconds: float
    bleu: float
    evaluation_seconds: float


class Curve(NamedTuple):
    """The evaluations of one run, in the order of their steps."""

    variant: str
    seed: int
    points: Sequence[Point]


def first_reaching(points: Sequence[Point], target: float) -> Point | None:
    """Returns the first evaluation with at least this BLEU; None if there is none.

    Example:
      >>> points = [Point(5, 1.0, 3.0, 0.1), Point(10, 2.0, 7.0, 0.1)]
      >>> first_reaching(points, 4.0).step, first_reaching(points, 8.0)
      (10, None)
    """
    return next((point for point in points if point.bleu >= target), None)


def summarise(
    curves: Sequence[Curve], targets: Sequence[float]
) -> list[dict[str, Any]]:
    """Returns a row for each variant, with medians over its seeds.

    A target that not all seeds reached has the median of those that did, and how many
    these are.
    """
    rows = []
    for variant in dict.fromkeys(curve.variant for curve in curves):
        runs = [c.points for c in curves if c.variant == variant and c.points]
        row: dict[str, Any] = {"variant": variant, "seeds": len(runs)}
        if runs:
            row |= _of_runs(runs, targets)
        rows.append(row)
    return rows


def _of_runs(runs: list[Sequence[Point]], targets: Sequence[float]) -> dict[str, Any]:
    def median(of: Callable[[Sequence[Point]], float]) -> float:
        return statistics.median(map(of, runs))

    reached = {}
    for target in targets:
        first = [p for points in runs if (p := first_reaching(points, target))]
        reached[f"{target:g}"] = {
            "runs": len(first),
            "steps": statistics.median(p.step for p in first) if first else None,
            "seconds": statistics.median(p.seconds for p in first) if first else None,
        }
    return {
        "best_bleu": [max(p.bleu for p in points) for points in runs],
        "steps": median(lambda points: points[-1].step),
        "seconds": median(lambda points: points[-1].seconds),
        "evaluation_seconds": median(
            lambda points: sum(p.evaluation_seconds for p in points)
        ),
        "milliseconds_per_step": median(
            lambda points: 1_000 * points[-1].seconds / points[-1].step
        ),
        "reached": reached,
    }


def markdown(rows: Sequence[dict[str, Any]], targets: Sequence[float]) -> str:
    """Formats the summary as a Markdown table."""
    names = ["variant", "seeds", "best BLEU", "steps", "s", "ms a step", "s evaluating"]
    names += [f"to {target:g}: {unit}" for target in targets for unit in ("steps", "s")]
    lines = [names, ["---"] * len(names)]
    for row in rows:
        cells = [row["variant"], str(row["seeds"])]
        if not row["seeds"]:
            lines.append([*cells, *["-"] * (len(names) - 2)])
            continue
        cells += [", ".join(f"{bleu:.2f}" for bleu in row["best_bleu"])]
        cells += [f"{row['steps']:,.0f}", f"{row['seconds']:,.1f}"]
        cells += [f"{row['milliseconds_per_step']:,.0f}"]
        cells += [f"{row['evaluation_seconds']:,.1f}"]
        for found in row["reached"].values():
            cells += _reached(found, seeds=row["seeds"])
        lines.append(cells)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _reached(found: dict[str, Any], *, seeds: int) -> list[str]:
    if not found["runs"]:
        return ["not reached", "not reached"]
    part = "" if found["runs"] == seeds else f" ({found['runs']} of {seeds})"
    return [f"{found['steps']:,.0f}{part}", f"{found['seconds']:,.1f}{part}"]


def plot(curves: Sequence[Curve], targets: Sequence[float]) -> bytes:
    """Plots BLEU against seconds and against steps, as PNG; a colour a variant.

    Raises:
      UserError: matplotlib is not installed.
    """
    figure = new_figure(11.0, 4.8)
    panels = figure.subplots(1, 2, sharey=True)
    variants = list(dict.fromkeys(curve.variant for curve in curves))
    for panel, field in zip(panels, ("seconds", "step"), strict=True):
        for variant, _, points in (curve for curve in curves if curve.points):
            color = color_of(_COLORS, variants.index(variant) % 10)
            x = [getattr(point, field) for point in points]
            panel.plot(x, [p.bleu for p in points], "o-", ms=3, color=color)
        for target in targets:
            panel.axhline(target, color="0.5", linestyle=":")
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.locator_params(axis="x", nbins=6)
        panel.grid(alpha=0.3)
    panels[0].set(xlabel="seconds of training", ylabel="development BLEU")
    panels[1].set(xlabel="optimizer step")
    for number, variant in enumerate(variants):
        color = color_of(_COLORS, number % 10)
        panels[1].plot([], [], "o-", ms=3, color=color, label=variant)
    panels[1].legend()
    figure.suptitle("BLEU over the course of training, a line for each seed")
    return render_png(figure)
