"""What every picture is drawn on: figures of matplotlib, rendered without a display.

matplotlib is an extra, imported when something is drawn. Every figure is an object of
its own and none is pyplot's, whose state is the process's.
"""

from __future__ import annotations

import io
import logging
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING

from t2t_jax.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOGGER = logging.getLogger(__name__)

DOTS_PER_INCH = 150
"""Of the files: a label of 8 points is 17 dots high."""

COLOR_MAP = "viridis"
"""Perceptually uniform: equal steps of a value look equal, in grey as well."""

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, each in [0, 1]."""


def require_matplotlib() -> None:
    """Checks that there is something to draw with, before there is anything to draw.

    Raises:
      UserError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise UserError(
            "Pictures need matplotlib, which is not installed. "
            "Run: pip install -e '.[plots]'"
        )


def new_figure(width: float, height: float) -> Figure:
    """Makes an empty figure whose parts find their places when it is rendered.

    Raises:
      UserError: matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def shade(share: float) -> Color:
    """Returns the colour of `COLOR_MAP` at `share`, from 0 to 1."""
    return color_of(COLOR_MAP, share)


def color_of(color_map: str, value: float) -> Color:
    """Looks a colour up.

    Args:
      color_map: one of matplotlib's, by its name.
      value: a share in [0, 1], or the whole number of a colour in a list of them.

    Returns:
      The colour.
    """
    from matplotlib import colormaps

    red, green, blue, opacity = colormaps[color_map](value)
    return float(red), float(green), float(blue), float(opacity)


def png(figure: Figure) -> bytes:
    """Renders a figure.

    Returns:
      A PNG file's content. What the font cannot write is a box, and a warning in the
      log names it.
    """
    content = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # "tight": the layout misjudges the room of some labels and would cut them.
        figure.savefig(content, format="png", dpi=DOTS_PER_INCH, bbox_inches="tight")
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        _LOGGER.warning("%s", message)
    return content.getvalue()
