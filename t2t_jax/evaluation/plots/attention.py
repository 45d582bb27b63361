"""Pictures of attention: heat maps, and lines as in Figures 3 to 5 of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_jax.evaluation.plots.figure import COLOR_MAP, Color, color_of, new_figure
from t2t_jax.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

_LABEL = 0.13
"""Inches that a label of 8 points takes, with the air around it."""

_LARGEST_PANEL = 10.0
"""Inches: 76 labels side by side."""

_FAINTEST = 0.05
"""The least weight drawn as a line: many fainter ones would make a dark cloud."""

_TALLEST = 200.0
"""Inches: no file may be higher than 65,536 dots, and few viewers open half of it."""

_QUERY, _KEY = "query: looks", "key: is looked at"
_PALE = "0.45"


def label_of(piece: str) -> str:
    """Writes a piece as people read it.

    Args:
      piece: as the vocabulary stores it, U+2581 where a word begins.

    Returns:
      The beginning of a word as it is; letters that continue one after a middle dot.

    Example:
      >>> [label_of(piece) for piece in ["▁Hünd", "chen", ".", "▁", "</s>"]]
      ['Hünd', '·chen', '.', '␣', '</s>']
    """
    if piece.startswith("▁"):
        return piece[1:].replace("▁", "␣") or "␣"
    return f"·{piece}" if piece[:1].isalnum() else piece


def draw_heat_maps(
    weights_HxQxK: Array,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    heads: Sequence[int],
    title: str,
) -> Figure:
    """Draws attention weights as a sheet of heat maps, a panel a head.

    All panels share one scale from 0. What is exactly 0 may not be looked at, and is
    left white. Where there are more words than places for them, every second or third
    is written.

    Args:
      weights_HxQxK: [H, Q, K] weights of one layer, all its heads.
      queries: Q words that look: the rows.
      keys: K words that are looked at: the columns.
      heads: numbers of the heads to draw, from 0.

    Returns:
      The sheet.

    Raises:
      UserError: matplotlib is not installed.
    """
    cell = min(0.4, _LARGEST_PANEL / max(len(queries), len(keys)))
    width, height = (max(cell * len(words), 0.9) for words in (keys, queries))
    columns, rows = _grid(len(heads), width=width, height=height)
    figure = new_figure(
        columns * (width + 0.1) + _room(queries) + 1.6,
        rows * (height + 0.35) + _room(keys) + 0.8,
    )
    chosen = np.ma.masked_equal(np.asarray(weights_HxQxK)[list(heads)], 0.0)
    panels: list[Axes] = []
    for place, head in enumerate(heads):
        panel = figure.add_subplot(rows, columns, place + 1)
        image = panel.imshow(chosen[place], cmap=COLOR_MAP, vmin=0.0, vmax=chosen.max())
        panel.set_title(f"head {head}", fontsize=10)
        panel.tick_params(length=2)
        is_lowest = place + columns >= len(heads)
        is_leftmost = place % columns == 0
        panel.set_xlabel(_KEY if is_lowest else "", color=_PALE, size=8)
        panel.set_ylabel(_QUERY if is_leftmost else "", color=_PALE, size=8)
        _label(panel.xaxis, keys if is_lowest else (), cell=cell, rotation=90)
        _label(panel.yaxis, queries if is_leftmost else (), cell=cell, rotation=0)
        panels.append(panel)
    figure.colorbar(
        image, ax=panels, label="attention weight", shrink=0.6, aspect=30, pad=0.02
    )
    figure.suptitle(title)
    return figure


def draw_lines(
    weights_HxQxK: Array,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    heads: Sequence[int],
    title: str,
) -> Figure:
    """Draws attention weights as lines between two columns of words.

    A line runs from the word that looks to the word looked at, as opaque as its weight
    is large, if that is 0.05 or more. A head has the same colour in every picture;
    several heads run side by side.

    Args:
      weights_HxQxK: [H, Q, K] weights of one layer, all its heads.
      queries: Q words that look: on the left.
      keys: K words that are looked at: on the right.
      heads: numbers of the heads to draw, from 0.

    Returns:
      The picture.

    Raises:
      UserError: matplotlib is not installed.

    Paper:
      Figures 3, 4 and 5.
    """
    rows = max(len(queries), len(keys))
    row = min(0.22, _TALLEST / rows)
    figure = new_figure(6.0 + min(rows / 20, 4.0), row * (rows + 1) + 1.4)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(rows, -1))
    # The shorter column is stretched, so that lines between like places are level.
    heights_Q = (np.arange(len(queries)) + 0.5) * rows / len(queries)
    heights_K = (np.arange(len(keys)) + 0.5) * rows / len(keys)
    _column(axes, _QUERY, words=queries, heights=heights_Q, row=row)
    _column(axes, _KEY, words=keys, heights=heights_K, row=row)
    for place, head in enumerate(heads):
        beside = 0.6 * ((place + 0.5) / len(heads) - 0.5)
        drawn = _lines(
            np.asarray(weights_HxQxK)[head],
            heights_Q=heights_Q + beside,
            heights_K=heights_K + beside,
            color=_color(head),
        )
        axes.add_collection(drawn)
    figure.legend(
        handles=[_swatch(head) for head in heads],
        loc="outside lower center",
        ncols=min(4, len(heads)),
        frameon=False,
    )
    figure.suptitle(title)
    return figure


def _grid(panels: int, *, width: float, height: float) -> tuple[int, int]:
    """Returns the columns and rows of the smallest sheet, if need be a broad one."""
    grids = [(columns, math.ceil(panels / columns)) for columns in range(1, panels + 1)]
    return min(grids, key=lambda grid: (grid[0] * width + grid[1] * height, -grid[0]))


def _room(words: Sequence[str]) -> float:
    """Estimates the inches that the longest word takes in 8 points."""
    return 0.07 * max(map(len, words))


def _label(axis: Axis, words: Sequence[str], *, cell: float, rotation: int) -> None:
    """Writes as many of the words along an axis as can be read."""
    shown = range(0, len(words), math.ceil(_LABEL / cell))
    axis.set_ticks(shown)
    axis.set_ticklabels(
        [words[n] for n in shown], rotation=rotation, parse_math=False, size=8
    )


def _column(
    axes: Axes,
    name: str,
    *,
    words: Sequence[str],
    heights: np.ndarray[Any, Any],
    row: float,
) -> None:
    """Writes a column of words under its name: those that look are on the left."""
    x, side = (-0.02, "right") if name == _QUERY else (1.02, "left")
    axes.text(x, -0.6, name, color=_PALE, size=8, ha=side, va="center")
    for n in range(0, len(words), math.ceil(_LABEL / row)):
        place = (x, heights[n], words[n])
        axes.text(*place, size=9, ha=side, va="center", parse_math=False)


def _lines(
    weights_QxK: np.ndarray[Any, Any],
    *,
    heights_Q: np.ndarray[Any, Any],
    heights_K: np.ndarray[Any, Any],
    color: Color,
) -> LineCollection:
    """Draws each weight that is worth a line."""
    from matplotlib.collections import LineCollection

    queries, keys = np.nonzero(weights_QxK >= _FAINTEST)
    ends = np.stack([heights_Q[queries], heights_K[keys]], axis=1)
    lines = np.stack([np.broadcast_to([0.0, 1.0], ends.shape), ends], axis=2)
    opacities = np.minimum(weights_QxK[queries, keys], 1.0)  # rounding exceeds 1
    colors = [(*color[:3], float(opacity)) for opacity in opacities]
    return LineCollection(list(lines), colors=colors, linewidths=1.6)


def _color(head: int) -> Color:
    """Gives each of 20 heads a colour: ten strong ones, then their pale cousins."""
    return color_of("tab20", (2 * head + head // 10) % 20)


def _swatch(head: int) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=_color(head), linewidth=4, label=f"head {head}")
