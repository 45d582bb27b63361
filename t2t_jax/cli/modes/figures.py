"""`--mode=figures`: plots equation 3 and the positional encoding, without a model."""

from __future__ import annotations

import sys

from t2t_jax.cli.console.text_io import make_directory, write_file
from t2t_jax.cli.flags.options import FiguresOptions
from t2t_jax.evaluation.plots import render_png, require_matplotlib


def run(options: FiguresOptions) -> None:
    """Writes `schedule.png` and `positions.png` into `options.to`."""
    require_matplotlib()
    to = make_directory(options.to)
    from t2t_jax.evaluation.plots import plot_positions, plot_schedule

    write_file(to / "schedule.png", render_png(plot_schedule()))
    write_file(to / "positions.png", render_png(plot_positions()))
    print(f"Wrote 2 plots to {to}.", file=sys.stderr)
