"""Calculates how the paper's models would scale. Nothing here is measured.

    python benchmarks/scaling_projection.py
    python benchmarks/scaling_projection.py --compute_ms=25 --megabytes=252 --json

Data parallelism on n accelerators: each computes its part of the batch, then all add up
their gradients. A ring sends and receives 2 (n - 1) / n times the gradients over the
slowest link on its way. Assumptions, all of them flags: the time that one accelerator
takes for the paper's batch, of which a part of 1 / n takes 1 / n; bytes a second that
each gives and takes inside a machine and between machines; how much of the exchange is
hidden behind the backward pass. Small parts compute less efficiently than large ones,
and hundreds of accelerators wait for the slowest: both are left out, so these are upper
bounds.
"""

from __future__ import annotations

import argparse
import json
from typing import Any


def project(
    accelerators: int,
    *,
    compute_ms: float,
    megabytes: float,
    inside: float,
    between: float,
    in_machine: int,
    hidden: float,
    batches: float,
) -> dict[str, float]:
    """Calculates a step.

    Args:
      accelerators: how many.
      compute_ms: of one batch on one of them.
      megabytes: of gradients.
      inside: gigabytes a second of each link inside a machine.
      between: the same between machines, for each accelerator.
      in_machine: accelerators of a machine.
      hidden: share of the backward pass, two thirds of a step, that hides exchange.
      batches: how many times the paper's batch the global batch is.

    Returns:
      Milliseconds, and the efficiency beside one accelerator on the same batch.
    """
    computing = compute_ms * batches / accelerators
    rate = inside if accelerators <= in_machine else between
    exchanging = 2 * (accelerators - 1) / accelerators * megabytes / rate
    shown = max(0.0, exchanging - hidden * computing * 2 / 3)
    return {
        "accelerators": accelerators,
        "batches": batches,
        "computing_ms": computing,
        "exchanging_ms": exchanging,
        "step_ms": computing + shown,
        "efficiency": computing / (computing + shown),
    }


def main() -> None:
    """Reads the assumptions, and prints what follows from them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compute_ms", type=float, default=25.0)
    parser.add_argument("--megabytes", type=float, default=252.2)
    parser.add_argument("--inside", type=float, default=360.0, help="GB/s")
    parser.add_argument("--between", type=float, default=45.0, help="GB/s")
    parser.add_argument("--in_machine", type=int, default=8)
    parser.add_argument("--hidden", type=float, default=0.5)
    parser.add_argument("--json", action="store_true")
    options = vars(parser.parse_args())
    as_json = options.pop("json")
    table: list[dict[str, Any]] = [
        project(accelerators, batches=batches, **options)
        for accelerators in (1, 8, 64, 512)
        for batches in sorted({1.0, max(1.0, accelerators / 8)})
    ]
    if as_json:
        print(json.dumps({"assumptions": options, "table": table}, indent=2))
        return
    print("A calculation from assumptions, not a measurement:")
    print(", ".join(f"{name}={value:g}" for name, value in options.items()))
    for row in table:
        print(
            f"{row['accelerators']:>4} accelerators, {row['batches']:>4g} x the "
            f"paper's batch: computing {row['computing_ms']:7.2f} ms, exchanging "
            f"{row['exchanging_ms']:6.2f} ms, step {row['step_ms']:7.2f} ms, "
            f"efficiency {row['efficiency']:.0%}"
        )


if __name__ == "__main__":
    main()
