"""Creates and renders matplotlib figures without a display.

matplotlib is an optional dependency, imported on use. Figures are created without
pyplot, whose state is global.
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

DOTS_PER_INCH = 150  # a label of 8 points is 17 dots high
COLOR_MAP = "viridis"  # perceptually uniform, in grey as well

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, each in [0, 1]."""


def require_matplotlib() -> None:
    """Checks that matplotlib is installed, before anything is computed.

    Raises:
      UserError: it is not.
    """
    if find_spec("matplotlib") is None:
        raise UserError(
            "Plots need matplotlib, which is not installed. "
            "Run: pip install 't2t-jax[plots]'"
        )


def new_figure(width: float, height: float) -> Figure:
    """Creates an empty figure with constrained layout; sizes in inches.

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
    """Looks up a colour by a share in [0, 1], or an index into a list of colours."""
    from matplotlib import colormaps

    red, green, blue, opacity = colormaps[color_map](value)
    return float(red), float(green), float(blue), float(opacity)


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
