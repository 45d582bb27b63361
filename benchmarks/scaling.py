"""Compiles the paper's step for many devices that are not here; prints estimated times.

python benchmarks/scaling.py --sizes=base --targets=gpu:h100 --devices=1,8 --out=x.jsonl

Lines that --out already has are not compiled again. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from t2t_jax.config import parse
from t2t_jax.config_files import load_config
from t2t_jax.data.config import DataConfig
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.devices.topology import parse_topology
from t2t_jax.run.description.summary import describe
from t2t_jax.run.description.topology_costs import TopologyRequest

CONFIGS = {"base": "wmt_en_de", "big": "wmt_en_de_big"}
SLICES = {1: "1x1", 8: "2x4", 64: "8x8", 256: "16x16"}
GPUS_OF_A_HOST = 8
ROW = 256
HEADER = (
    "| target | size | devices | rows each | ms a step | bound by | links, ms | of "
)
HEADER += "these hidden | memory, GB | hours |\n|" + "---|" * 10


def topology(target: str, devices: int) -> str:
    """Names so many devices of a target.

    Example:
      >>> topology("gpu:h100", 64), topology("tpu:v5e", 8)
      ('gpu:h100:8x8', 'tpu:v5e:2x4')
    """
    if target.startswith("tpu"):
        return f"{target}:{SLICES[devices]}"
    hosts = devices // GPUS_OF_A_HOST
    return f"{target}:{hosts}x{GPUS_OF_A_HOST}" if hosts > 1 else f"{target}:{devices}"


def estimate(size: str, target: str, devices: int, rows: int) -> dict[str, Any]:
    """Compiles a step and returns its description.

    Args:
      rows: of each device; 0 for those of the paper's batch.
    """
    config = parse(load_config(CONFIGS[size]))
    if rows:
        data = DataConfig(tokens_per_batch=rows * devices * ROW, row_length=ROW)
        config = dataclasses.replace(config, data=data)
    named = parse_topology(topology(target, devices))
    mesh = make_mesh(named.devices(), **config.mesh.axes)
    return describe(config, mesh=mesh, request=TopologyRequest(named))


def line(size: str, found: dict[str, Any]) -> str:
    """Formats a description as a line of the table."""
    links = sum(one["ms"] for one in found["collectives"])
    waited = sum(one["exposed_ms"] for one in found["collectives"])
    cells = [
        found["topology"],
        size,
        found["devices"],
        found["batch"]["rows_per_device"],
        *(f"{found['estimated_ms']:.3g}", found["bound_by"]),
        *(f"{links:.3g}", f"{1 - waited / links:.0%}" if links else "-"),
        f"{found['bytes_needed'] / 1e9:.3g}{'' if found['fits'] else ', too much'}",
        f"{found['estimated_hours']:.3g}",
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Compiles what --out lacks, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="base,big")
    parser.add_argument("--targets", default="gpu:h100,tpu:v5e,tpu:v6e")
    parser.add_argument("--devices", default="1,8,64,256")
    parser.add_argument("--rows", type=int, default=0, help="of each device")
    parser.add_argument("--out", type=Path, default=Path("scaling.jsonl"))
    options = parser.parse_args()
    known = {}
    if options.out.exists():
        lines = map(json.loads, options.out.read_text().splitlines())
        known = {(one["size"], one["topology"], one["each"]): one for one in lines}
    print(HEADER)
    for devices in map(int, options.devices.split(",")):
        for target in options.targets.split(","):
            for size in options.sizes.split(","):
                key = (size, topology(target, devices), options.rows)
                if key not in known:
                    found = estimate(size, target, devices, options.rows)
                    known[key] = {**found, "size": size, "each": options.rows}
                    with options.out.open("a") as file:
                        file.write(json.dumps(known[key]) + "\n")
                print(line(size, known[key]), flush=True)


if __name__ == "__main__":
    main()
