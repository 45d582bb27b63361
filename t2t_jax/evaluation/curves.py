"""Pictures of scores over the course of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from t2t_jax.evaluation.canvas import new_figure, shade

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_averages(
    steps: Sequence[int],
    *,
    averages: Sequence[float],
    singles: Sequence[float],
    last: int,
) -> Figure:
    """Draws what averaging checkpoints gains, all along a run.

    Args:
      steps: the newest step of each average, oldest first; at least one.
      averages: BLEU of each average, in percent.
      singles: BLEU of its newest checkpoint alone, in percent.
      last: checkpoints in an average.

    Returns:
      Two curves over the same steps, the highest average marked with its value.

    Raises:
      UserError: matplotlib is not installed.

    Paper:
      §6.1.
    """
    figure = new_figure(8.0, 4.8)
    axes = figure.add_subplot()
    axes.plot(steps, singles, "s--", color=shade(0.7), label="newest checkpoint alone")
    axes.plot(steps, averages, "o-", color=shade(0.0), label=f"mean of {last}")
    best = max(range(len(steps)), key=lambda n: (averages[n], steps[n]))
    axes.annotate(
        f"{averages[best]:.2f}",
        (steps[best], averages[best]),
        xytext=(0, 9),
        textcoords="offset points",
        ha="center",
        weight="bold",
    )
    peak = ([steps[best]], [averages[best]])
    axes.plot(*peak, "*", color=shade(0.0), markersize=15, label="best mean")
    axes.margins(y=0.15)
    axes.set(xlabel="optimizer step of the newest checkpoint", ylabel="BLEU")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=8, integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.suptitle(f"BLEU of the mean of {last} checkpoints, along the run")
    return figure
