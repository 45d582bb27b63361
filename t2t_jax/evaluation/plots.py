"""Plots: attention as in Figures 3 to 5, the paper's formulas, scores along a run.

matplotlib is an optional dependency, imported on use. Figures are created without a
display and without pyplot, whose state is global.
"""

from __future__ import annotations

import io
import logging
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from t2t_jax.errors import require_package
from t2t_jax.types import Array

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

_LOGGER = logging.getLogger(__name__)

DOTS_PER_INCH = 150  # a label of 8 points is 17 dots high
COLOR_MAP = "viridis"  # perceptually uniform, in grey as well

Color: TypeAlias = tuple[float, float, float, float]
"""Red, green, blue and opacity, each in [0, 1]."""


def require_matplotlib() -> None:
    """Checks that matplotlib is installed, before anything is computed.

    Raises:
      UserError: it is not.
    """
    require_package("matplotlib", user="A plot", extra="plots")


def new_figure(width: float, height: float) -> Figure:
    """Creates an empty figure with constrained layout; sizes in inches.

    Raises:
      UserError: matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def shade(value: float, color_map: str = COLOR_MAP) -> Color:
    """Looks up a colour by a share in [0, 1], or an index into a list of colours."""
    from matplotlib import colormaps

    return colormaps[color_map](value)


def render_png(figure: Figure) -> bytes:
    """Renders a figure as PNG.

    Characters that the font lacks become boxes and are logged as warnings.
    """
    content = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # "tight": the layout underestimates some labels and would cut them.
        figure.savefig(content, format="png", dpi=DOTS_PER_INCH, bbox_inches="tight")
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        _LOGGER.warning("%s", message)
    return content.getvalue()


_LABEL_INCHES = 0.13  # of a label of 8 points, spacing included
_MAX_PANEL = 10.0  # inches: 76 labels side by side
_MIN_WEIGHT = 0.05  # fainter lines would blur the plot
# Inches: PNG files are limited to 65,536 dots, and few viewers open half of that.
_MAX_HEIGHT = 200.0

_QUERY, _KEY = "query", "key"
_GRAY = "0.45"
_WORD: Any = {"size": 9, "va": "center", "parse_math": False}


def label_of(piece: str) -> str:
    """Formats a vocabulary piece as a label: continuations after a middle dot.

    Example:
      >>> [label_of(piece) for piece in ["▁Hünd", "chen", ".", "▁", "</s>"]]
      ['Hünd', '·chen', '.', '␣', '</s>']
    """
    if piece.startswith("▁"):
        return piece[1:].replace("▁", "␣") or "␣"
    return f"·{piece}" if piece[:1].isalnum() else piece


class LayerAttention(NamedTuple):
    """The attention of one layer, to be plotted.

    Attributes:
      weights_HxQxK: of all heads.
      queries: Q labels, of the rows of a heat map.
      keys: K labels, of its columns.
      heads: to be plotted, indices from 0.
      title: of the figure.
    """

    weights_HxQxK: Array
    queries: Sequence[str]
    keys: Sequence[str]
    heads: Sequence[int]
    title: str


def plot_heat_maps(layer: LayerAttention) -> Figure:
    """Plots attention weights as heat maps, one panel per head.

    All panels share one scale from 0. Weights of exactly 0 are masked and stay white.
    If labels do not fit, only every second or third is shown.

    Raises:
      UserError: matplotlib is not installed.
    """
    weights_HxQxK, queries, keys, heads, title = layer
    cell = min(0.4, _MAX_PANEL / max(len(queries), len(keys)))
    width, height = (max(cell * len(words), 0.9) for words in (keys, queries))
    columns, rows = _grid(len(heads), width=width, height=height)
    figure = new_figure(
        columns * (width + 0.1) + _label_length(queries) + 1.6,
        rows * (height + 0.35) + _label_length(keys) + 0.8,
    )
    selected = np.ma.masked_equal(np.asarray(weights_HxQxK)[list(heads)], 0.0)
    for n, head in enumerate(heads):
        panel = figure.add_subplot(rows, columns, n + 1)
        panel.set_title(f"head {head}", fontsize=10)
        panel.tick_params(length=2)
        scale: Any = {"cmap": COLOR_MAP, "vmin": 0.0, "vmax": selected.max()}
        image = panel.imshow(selected[n], **scale)
        if is_lowest := n + columns >= len(heads):
            panel.set_xlabel(_KEY, color=_GRAY, size=8)
        if is_leftmost := n % columns == 0:
            panel.set_ylabel(_QUERY, color=_GRAY, size=8)
        _set_labels(panel.xaxis, keys if is_lowest else (), cell, rotation=90)
        _set_labels(panel.yaxis, queries if is_leftmost else (), cell, rotation=0)
    bar: Any = {"shrink": 0.6, "aspect": 30, "pad": 0.02}
    figure.colorbar(image, ax=figure.axes, label="attention weight", **bar)
    figure.suptitle(title)
    return figure


def plot_lines(layer: LayerAttention) -> Figure:
    """Plots attention weights as lines between two columns of words.

    A line connects a query, on the left, with a key, with the weight as opacity, if
    that is at least 0.05. A head has the same colour in every figure; several heads
    are offset.

    Raises:
      UserError: matplotlib is not installed.

    Paper: Figures 3, 4 and 5.
    """
    weights_HxQxK, queries, keys, heads, title = layer
    rows = max(len(queries), len(keys))
    row = min(0.22, _MAX_HEIGHT / rows)
    figure = new_figure(6.0 + min(rows / 20, 4.0), row * (rows + 1) + 1.4)
    axes = figure.add_subplot(xlim=(0, 1), ylim=(rows, -1))
    axes.set_axis_off()
    # The shorter column is stretched, so that lines between equal positions are level.
    heights_Q = (np.arange(len(queries)) + 0.5) * rows / len(queries)
    heights_K = (np.arange(len(keys)) + 0.5) * rows / len(keys)
    for x, side, name, words, heights in (
        (-0.02, "right", _QUERY, queries, heights_Q),
        (1.02, "left", _KEY, keys, heights_K),
    ):
        axes.text(x, -0.6, name, color=_GRAY, size=8, ha=side, va="center")
        for n in range(0, len(words), math.ceil(_LABEL_INCHES / row)):
            axes.text(x, heights[n], words[n], ha=side, **_WORD)
    for index, head in enumerate(heads):
        offset = 0.6 * ((index + 0.5) / len(heads) - 0.5)
        heights_of_both = heights_Q + offset, heights_K + offset
        lines = _lines(np.asarray(weights_HxQxK)[head], *heights_of_both, head)
        axes.add_collection(lines)
        axes.plot([], [], color=_color(head), linewidth=4, label=f"head {head}")
    figure.legend(loc="outside lower center", ncols=min(4, len(heads)), frameon=False)
    figure.suptitle(title)
    return figure


def _grid(panels: int, *, width: float, height: float) -> tuple[int, int]:
    """Returns columns and rows of the smallest grid; ties go to the wider one."""
    grids = [(columns, math.ceil(panels / columns)) for columns in range(1, panels + 1)]
    return min(grids, key=lambda grid: (grid[0] * width + grid[1] * height, -grid[0]))


def _label_length(words: Sequence[str]) -> float:
    """Estimates the inches of the longest word in 8 points."""
    return 0.07 * max(map(len, words))


def _set_labels(axis: Axis, words: Sequence[str], cell: float, rotation: int) -> None:
    shown = range(0, len(words), math.ceil(_LABEL_INCHES / cell))
    axis.set_ticks(shown)
    labels = [words[n] for n in shown]
    axis.set_ticklabels(labels, rotation=rotation, parse_math=False, size=8)


def _lines(weights_QxK: Array, y_Q: Array, y_K: Array, head: int) -> LineCollection:
    from matplotlib.collections import LineCollection

    drawn, color = np.argwhere(weights_QxK >= _MIN_WEIGHT), _color(head)[:3]
    lines: Any = [[(0, y_Q[q]), (1, y_K[k])] for q, k in drawn]
    # Rounding exceeds 1.
    colors = [(*color, min(weights_QxK[q, k], 1.0)) for q, k in drawn]
    return LineCollection(lines, colors=colors, linewidths=1.6)


def _color(head: int) -> Color:
    """Returns one of 20 colours: ten strong ones, then their pale variants."""
    return shade((2 * head + head // 10) % 20, "tab20")


_FAMILIES = {
    "the width (warmup_steps = 4,000)": ((256, 4000), (512, 4000), (1024, 4000)),
    "the warm-up (d_model = 512)": ((512, 2000), (512, 4000), (512, 8000)),
}
_SHADES = (0.0, 0.45, 0.75)


def plot_schedule(last_step: int = 20_000) -> Figure:
    """Plots equation 3 for three widths and three warm-up lengths, base in both.

    Paper: §5.3, equation 3.
    """
    from t2t_jax.functional.schedule import inverse_square_root

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
    from t2t_jax.functional.positions import LONGEST_PERIOD, sinusoidal_positions

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
    steps: list[int], *, averages: Sequence[float], singles: Sequence[float], last: int
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
    bleu, step = max(zip(averages, steps, strict=True))
    axes.plot(step, bleu, "*", color=shade(0.0), markersize=15, label="best mean")
    above: Any = {"xytext": (0, 9), "textcoords": "offset points", "ha": "center"}
    axes.annotate(f"{bleu:.2f}", (step, bleu), weight="bold", **above)
    axes.margins(y=0.15)
    axes.set(xlabel="optimizer step of the newest checkpoint", ylabel="BLEU")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=8, integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.suptitle(f"BLEU of the mean of {last} checkpoints, along the run")
    return figure
