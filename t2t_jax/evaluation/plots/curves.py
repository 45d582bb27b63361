"""Plots of the paper's formulas, and of scores over the course of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from t2t_jax.evaluation.plots.figure import COLOR_MAP, new_figure, shade
from t2t_jax.functional.positions import LONGEST_PERIOD, sinusoidal_positions
from t2t_jax.functional.schedule import inverse_square_root

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_FAMILIES = {
    "the width (warmup_steps = 4,000)": ((256, 4000), (512, 4000), (1024, 4000)),
    "the warm-up (d_model = 512)": ((512, 2000), (512, 4000), (512, 8000)),
}
_SHADES = (0.0, 0.45, 0.75)


def plot_schedule(last_step: int = 20_000) -> Figure:
    """Plots equation 3 for three widths and three warm-up lengths, base in both.

    Paper: §5.3, equation 3.
    """
    figure = new_figure(10.0, 4.2)
    steps = np.arange(1, last_step + 1)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for panel, (varied, family) in zip(panels, _FAMILIES.items(), strict=True):
        for share, (d_model, warmup_steps) in zip(_SHADES, family, strict=True):
            rates = inverse_square_root(steps, d_model, warmup_steps=warmup_steps)
            label = f"d_model {d_model}, warm-up {warmup_steps:,}"
            panel.plot(steps, np.asarray(rates), color=shade(share), label=label)
        panel.set_title(f"By {varied}", fontsize=10)
        panel.set_xlabel("optimizer step")
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.locator_params(axis="x", nbins=5)
        panel.grid(alpha=0.3)
        panel.legend()
    panels[0].set(ylabel="learning rate", xlim=(0, last_step), ylim=(0, None))
    panels[0].ticklabel_format(axis="y", scilimits=(-3, -3), useMathText=True)
    figure.suptitle("Equation 3: the learning rate")
    return figure


def plot_positions(length: int = 100, d_model: int = 128) -> Figure:
    """Plots the sinusoidal encoding, and below it three pairs of its dimensions.

    Args:
      d_model: even, and at least 16.

    Paper: §3.5.
    """
    figure = new_figure(9.0, 7.0)
    encodings_LxD = np.asarray(sinusoidal_positions(np.arange(length), d_model))
    heat_map, pairs = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    image = heat_map.imshow(
        encodings_LxD.T, cmap=COLOR_MAP, vmin=-1, vmax=1, aspect="auto", origin="lower"
    )
    figure.colorbar(image, ax=heat_map, label="value")
    heat_map.set_ylabel("dimension")
    for n in range(3):
        even = d_model // 16 * 2 * (n + 1)
        period = 2 * math.pi * LONGEST_PERIOD ** (even / d_model)
        label = f"dimensions {even} and {even + 1}: period {period:.0f}"
        pairs.plot(encodings_LxD[:, even], color=shade(n / 2.5), label=label)
        pairs.plot(encodings_LxD[:, even + 1], color=shade(n / 2.5), linestyle=":")
    pairs.set(xlabel="position", ylabel="value: sine, cosine dotted")
    pairs.set_xlim(-0.5, length - 0.5)
    pairs.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"Sinusoidal positions, d_model = {d_model}")
    return figure


def plot_averages(
    steps: Sequence[int],
    *,
    averages: Sequence[float],
    singles: Sequence[float],
    last: int,
) -> Figure:
    """Plots what checkpoint averaging gains over the course of a run.

    Args:
      steps: the newest step of each average, ascending; at least one.
      averages: BLEU of each average, in percent.
      singles: BLEU of its newest checkpoint, in percent.
      last: checkpoints per average.

    Raises:
      UserError: matplotlib is not installed.

    Paper: §6.1.
    """
    figure = new_figure(8.0, 4.8)
    axes = figure.add_subplot()
    axes.plot(steps, singles, "s--", color=shade(0.7), label="newest checkpoint")
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
