"""`--mode=average`: the mean of several checkpoints, as a model directory."""

from __future__ import annotations

import sys
from pathlib import Path

from t2t_jax.cli.options import Options


def run(options: Options) -> int:
    """Averages checkpoints of the workdir into `options.to`."""
    options.workdir.require()
    from t2t_jax.averages import average_checkpoints

    steps = average_checkpoints(
        options.workdir,
        to=Path(options.to).expanduser(),
        last=options.last,
        steps=options.average_steps,
        force=options.force,
    )
    print(
        f"Averaged the checkpoints {', '.join(f'{step:,}' for step in steps)} into "
        f"{options.to}. Use it with --workdir={options.to}.",
        file=sys.stderr,
    )
    return 0
