"""Measures what more devices bring: speed, bytes exchanged, and that nothing changes.

    python benchmarks/scaling.py                     # the devices that there are
    python benchmarks/scaling.py --simulate=8        # 8 devices made of one CPU
    python benchmarks/scaling.py --mesh=fsdp --json
    python benchmarks/scaling.py --topology=v5e:2x4  # bytes alone, needs libtpu
    python benchmarks/scaling_projection.py          # calculates, measures nothing

The program's own training step, dropout and smoothing on, takes the same global batches
on 1, 2, 4, 8 devices; the numbers of devices take turns. Bytes are read from the
compiled program. On simulated devices time means nothing and is left out: what they
show is that the losses are the same, and how much the devices would exchange.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Sequence
from typing import Any

MESHES = ("data", "fsdp", "tensor", "optimizer")
COMPARED_STEPS = 5


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Takes the same steps on each number of devices, and times them in turns."""
    import jax
    from hlo_communication import collective_bytes
    from scaled_step import SIZES, Trainee

    from t2t_jax.training.config import TrainingConfig

    devices = _devices(options.topology)
    trainees = [
        Trainee(
            SIZES[options.size],
            devices=devices[:count],
            mesh=options.mesh,
            batch=(options.rows, options.row_length),
            training=TrainingConfig(
                micro_batches=options.micro_batches,
                gradient_dtype=options.gradient_dtype,
            ),
        )
        # A topology that is not there is compiled for as a whole.
        for count in ([len(devices)] if options.topology else options.devices)
        if count <= len(devices)
    ]
    found: list[dict[str, Any]] = [
        {
            "devices": trainee.devices,
            "collective_bytes": collective_bytes(trainee.compiled.as_text()),
            "state_bytes": trainee.bytes_of_state(),
        }
        for trainee in trainees
    ]
    simulated = not options.topology and devices[0].platform == "cpu"
    if not options.topology:
        _compare(trainees, found)
        if not simulated:
            _time(trainees, found, options)
    return {
        "size": options.size,
        "mesh": options.mesh,
        "micro_batches": options.micro_batches,
        "gradient_dtype": options.gradient_dtype,
        "batch": [options.rows, options.row_length],
        "device": devices[0].device_kind,
        "topology": options.topology,
        "simulated": simulated,
        "jax": jax.__version__,
        "runs": found,
    }


def _devices(topology: str) -> Sequence[Any]:
    """Finds the devices that there are, or those of a topology to compile for."""
    import jax

    if not topology:
        return jax.devices()
    from jax.experimental import topologies

    devices: Sequence[Any] = topologies.get_topology_desc(topology, "tpu").devices
    return devices


def _compare(trainees: Sequence[Any], found: list[dict[str, Any]]) -> None:
    """Adds how far the losses are from those of the fewest devices."""
    for trainee, run in zip(trainees, found, strict=True):
        trainee.begin()
        sums = [trainee.step(number).sums for number in range(COMPARED_STEPS)]
        run["losses"] = [float(s.loss) / float(s.target_tokens) for s in sums]
        run["target_tokens"] = [int(s.target_tokens) for s in sums]
    first = found[0]["losses"]
    for run in found:
        pairs = zip(first, run["losses"], strict=True)
        run["largest_relative_difference"] = max(abs(a - b) / abs(a) for a, b in pairs)
        run["same_tokens"] = run["target_tokens"] == found[0]["target_tokens"]


def _time(
    trainees: Sequence[Any], found: list[dict[str, Any]], options: argparse.Namespace
) -> None:
    """Adds tokens a second and what follows from them; the trainees take turns."""
    seconds: list[list[float]] = [[] for _ in trainees]
    for trainee in trainees:
        trainee.seconds(2)  # The first steps of a program are slower than the others.
    for _ in range(options.rounds):
        for trainee, times in zip(trainees, seconds, strict=True):
            times.append(trainee.seconds(options.steps) / options.steps)
    for run, trainee, times in zip(found, trainees, seconds, strict=True):
        median = statistics.median(times)
        tokens = run["target_tokens"][0]  # of the batch that was timed
        run["seconds_per_step"] = median
        run["target_tokens_per_second"] = tokens / median
        alone = found[0]["target_tokens_per_second"] / found[0]["devices"]
        run["efficiency"] = tokens / median / run["devices"] / alone
        if options.peak_tflops:
            run["mfu"] = trainee.flops() / (
                median * run["devices"] * options.peak_tflops * 1e12
            )


def show(report: dict[str, Any]) -> None:
    """Prints the report for people."""
    rows, length = report["batch"]
    print(
        f"{report['size']}, {rows} rows x {length} slots, mesh axis {report['mesh']}, "
        f"{report['micro_batches']} micro-batch(es), {report['device']}"
    )
    if report["simulated"]:
        print("Simulated devices: they share one CPU, so time means nothing here.")
    if report["topology"]:
        print(f"Compiled for {report['topology']}, which is not here: nothing was run.")
    print(
        f"{'devices':>7} {'tokens/s':>10} {'efficiency':>10} {'MFU':>6} "
        f"{'state MB':>9} {'exchanged MB a step':<40} largest difference"
    )
    for run in report["runs"]:
        rate = run.get("target_tokens_per_second")
        exchanged = ", ".join(
            f"{kind} {size / 1e6:.1f}" for kind, size in run["collective_bytes"].items()
        )
        print(
            f"{run['devices']:>7} {f'{rate:,.0f}' if rate else '-':>10} "
            f"{_percent(run.get('efficiency')):>10} {_percent(run.get('mfu')):>6} "
            f"{run['state_bytes'] / 1e6:>9.1f} {exchanged or 'nothing':<40} "
            f"{_difference(run)}"
        )


def _difference(run: dict[str, Any]) -> str:
    if "losses" not in run:
        return "-"
    tokens = "" if run["same_tokens"] else "  OTHER TOKENS"
    return f"{run['largest_relative_difference']:.1e}{tokens}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def main() -> None:
    """Reads the command line, and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=("small", "base", "big"), default="small")
    parser.add_argument("--mesh", choices=MESHES, default="data")
    parser.add_argument(
        "--devices",
        type=lambda text: [int(n) for n in text.split(",")],
        default=[1, 2, 4, 8],
    )
    parser.add_argument("--simulate", type=int, default=0, metavar="N")
    parser.add_argument(
        "--topology", default="", help="of TPUs to compile for (libtpu), as v5e:2x4"
    )
    parser.add_argument("--rows", type=int, default=96)
    parser.add_argument("--row_length", type=int, default=256)
    parser.add_argument("--micro_batches", type=int, default=1)
    parser.add_argument(
        "--gradient_dtype", choices=("float32", "bfloat16"), default="float32"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10, help="of a round")
    parser.add_argument("--peak_tflops", type=float, default=0.0, help="of a device")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.simulate or options.topology:  # Before JAX is imported.
        os.environ["JAX_PLATFORMS"] = "cpu"
        flag = f"--xla_force_host_platform_device_count={options.simulate or 1}"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}"
    report = measure(options)
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        show(report)


if __name__ == "__main__":
    main()
