"""`--mode=figures`: pictures of equation 3 and of the positions; needs no model."""

from __future__ import annotations

import sys

from t2t_jax.cli.console.output_dir import OutputDirectory
from t2t_jax.cli.flags.options import Options
from t2t_jax.evaluation.plots.figure import png, require_matplotlib


def run(options: Options) -> int:
    """Writes `schedule.png` and `positions.png` into `options.to`."""
    require_matplotlib()
    to = OutputDirectory(options.to)
    from t2t_jax.evaluation.plots.curves import draw_positions, draw_schedule

    to.write("schedule.png", png(draw_schedule()))
    to.write("positions.png", png(draw_positions()))
    print(f"Wrote 2 pictures into {to.path}.", file=sys.stderr)
    return 0
