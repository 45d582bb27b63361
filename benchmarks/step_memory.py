"""Asks the compiler what memory a training step takes on a device; runs nothing.

    python benchmarks/step_memory.py
    python benchmarks/step_memory.py --size=big --variant=model.remat=True
    python benchmarks/step_memory.py --topology=v5p:2x2x1 --json   # needs libtpu

The program's own step, dropout and smoothing on, as a run compiles it. `--variant` may
be given several times, each with keys of the configuration that are to be changed
(KEY=VALUE,KEY=VALUE); there is a row without any and one for each. Operations are the
compiler's count, which takes the body of a loop, such as micro-batches, once.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from typing import Any

from variants import add_variant_flag, changes

SIZES = {
    "tiny": {
        **{"model.num_layers": 1, "model.d_model": 32, "model.d_ff": 64},
        **{"model.num_heads": 2, "model.d_k": 16, "model.d_v": 16},
        "vocabulary.size": 500,
    },
    "base": {},
    "big": {"model.d_model": 1024, "model.d_ff": 4096, "model.num_heads": 16},
}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Compiles each size in each variant, and notes what the compiler says."""
    import jax

    from t2t_jax.config import default, parse
    from t2t_jax.description.costs import compile_costs, state_shapes, step_flops
    from t2t_jax.sharding.mesh import make_mesh

    devices = _devices(options.topology)
    runs = []
    for size in options.size:
        for variant in ["", *options.variant]:
            values = default()
            values.update_from_flattened_dict(
                {
                    "data.tokens_per_batch": options.tokens * len(devices),
                    **SIZES[size],
                    **changes(variant),
                }
            )
            config = parse(values)
            began = time.perf_counter()
            found = compile_costs(
                config,
                state=state_shapes(config),
                mesh=make_mesh(devices, config=config.mesh),
            )
            rows = options.tokens // config.data.row_length
            runs.append(
                {
                    "size": size,
                    "variant": variant,
                    **found.memory._asdict(),
                    "total": found.memory.total,
                    "flops": sum(step_flops(config, rows=rows).values()),
                    "compiler_flops": found.flops / len(devices),
                    "compile_seconds": time.perf_counter() - began,
                }
            )
    return {
        "tokens": options.tokens,
        "device": devices[0].device_kind,
        "devices": len(devices),
        "jax": jax.__version__,
        "runs": runs,
    }


def _devices(topology: str) -> Sequence[Any]:
    """Takes one device of this machine, or those of a topology to compile for."""
    import jax

    if not topology:
        return jax.devices()[:1]
    from jax.experimental import topologies

    devices: Sequence[Any] = topologies.get_topology_desc(topology, "tpu").devices
    return devices


def show(report: dict[str, Any]) -> None:
    """Prints the report for people."""
    print(
        f"{report['tokens']:,} tokens a side on each of {report['devices']} x "
        f"{report['device']}, JAX {report['jax']}; bytes of a device"
    )
    print(
        f"{'size':<5} {'arguments MB':>12} {'temporaries MB':>14} {'in all MB':>10} "
        f"{'TFLOP':>7} {'compiled s':>10}  variant"
    )
    for run in report["runs"]:
        print(
            f"{run['size']:<5} {run['arguments'] / 1e6:>12,.0f} "
            f"{run['temporaries'] / 1e6:>14,.0f} {run['total'] / 1e6:>10,.0f} "
            f"{run['compiler_flops'] / 1e12:>7.2f} {run['compile_seconds']:>10.0f}  "
            f"{run['variant'] or 'as it is'}"
        )


def main() -> None:
    """Reads the command line, and asks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--size", type=lambda text: text.split(","), default=["base", "big"]
    )
    add_variant_flag(parser)
    parser.add_argument("--tokens", type=int, default=24_576, help="of a device")
    parser.add_argument(
        "--topology", default="", help="of TPUs to compile for (libtpu), as v5p:2x2x1"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.size) - SIZES.keys():
        parser.error(f"--size is one of {', '.join(SIZES)}, and not {unknown.pop()}")
    if options.topology:  # Before JAX is imported.
        os.environ["JAX_PLATFORMS"] = "cpu"
    report = measure(options)
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        show(report)


if __name__ == "__main__":
    main()
