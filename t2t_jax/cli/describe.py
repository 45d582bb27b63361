"""`--mode=describe`: says what a configuration is and what it costs; trains nothing."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from t2t_jax.cli.options import Options
from t2t_jax.description.pair_counts import count_pairs_of

if TYPE_CHECKING:
    from jax.sharding import Mesh


def run(options: Options) -> int:
    """Prints a report on stdout: for people, or one JSON object; returns 0.

    Raises:
      UserError: a corpus cannot be understood.
    """
    data = count_pairs_of(options.config, workdir=options.workdir)
    print("Compiling the training step, to ask what it takes …", file=sys.stderr)
    mesh = _mesh(options.devices)
    from t2t_jax.description.summary import describe

    description = describe(
        options.config,
        mesh=mesh,
        data=data,
        peak_tflops=options.peak_tflops,
        mfu=options.mfu,
    )
    if options.format == "json":
        print(json.dumps(description, indent=2))
        return 0
    from t2t_jax.cli.description_text import sections
    from t2t_jax.cli.report import show

    show(sections(description), file=sys.stdout)
    return 0


def _mesh(devices: int) -> Mesh:
    """Takes this machine's devices, or simulates as many as are asked for."""
    import jax

    from t2t_jax.parallelism.mesh import make_mesh

    if devices:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", devices)
    return make_mesh()
