"""Describes a configuration: model, costs, data, and differences to the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jax.sharding import Mesh

from t2t_jax.config import ARCHITECTURES, Config, to_dict
from t2t_jax.devices.processor import resolve_compute_dtype
from t2t_jax.devices.sharding.mesh import row_shards
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.counting import count_parameters, training_flops
from t2t_jax.run.description.costs import (
    SENTENCE_LENGTH,
    Compiled,
    batch_layout,
    compile_costs,
    longest_shape,
    num_bytes,
    optimizer_flops,
    parameter_table,
    per_device_state,
    state_shapes,
    step_flops,
)
from t2t_jax.run.description.departures import departures, matches
from t2t_jax.run.description.parsing import SETTINGS, is_parser, paper_model
from t2t_jax.run.description.table3_rows import (
    ROWS,
    paper_result,
    table3_row,
    variations,
)
from t2t_jax.run.description.topology_costs import TopologyRequest, topology_costs
from t2t_jax.run.resume_rules import differences
from t2t_jax.training.optimizer import make_schedule, trained_part
from t2t_jax.training.state import TrainState
from t2t_jax.types import Batch

# §5.2 and Table 2: hours on 8 P100, and training cost in FLOPs.
_PAPER_COSTS = {
    "base": {"hours": 12.0, "flops": 3.3e18},
    "big": {"hours": 84.0, "flops": 2.3e19},
}


def describe(
    config: Config,
    *,
    mesh: Mesh,
    data: Mapping[str, Any] | None = None,
    request: TopologyRequest | None = None,
    peak_tflops: float = 0.0,
    mfu: float = 0.4,
) -> dict[str, Any]:
    """Computes the description of a configuration.

    Args:
      data: from `cli.modes.describe.count_pairs_of`; None if not counted.
      request: if the mesh's devices are not here; its estimates are keys of their own.
      peak_tflops: of one device, in 10^12 operations per second; 0 if unknown.

    Returns:
      JSON values. `flops_per_step` is by formula, `compiler_flops_per_step` by the
      compiler; `estimate` is None without `peak_tflops`.
    """
    state = state_shapes(config)
    rows, _ = batch_layout(config, mesh).shapes[-1]
    topology = request.topology if request else None
    compiled = compile_costs(config, state=state, mesh=mesh, topology=topology)
    shard = per_device_state(config, state=state, mesh=mesh)
    by_part = step_flops(config, rows=rows) | optimizer_flops(config, state.optimizer)
    flops, known = sum(by_part.values()), (data or {}).values()
    parameters = count_parameters(config.network)
    checkpoint = num_bytes((state.params, state.optimizer, state.ema))
    return {
        **topology_costs(config, compiled, shard=shard, mesh=mesh, request=request),
        **_paper_comparison(config),
        "parameters": {**parameters._asdict(), "total": parameters.total},
        "parameters_by_kind": parameter_table(state.params),
        "passes": config.training.passes,
        "flops_per_step": flops,
        "flops_by_part": by_part,
        "compiler_flops_per_step": compiled.flops,
        "flops_per_token_pair": _flops_of_a_pair(config),
        "learning_rate": _learning_rate(config),
        "batch": _batch(config, mesh),
        "memory": _memory(config, shard, compiled, rows=rows // row_shards(mesh)),
        "checkpoint_bytes": checkpoint,
        "checkpoints_bytes": (config.checkpoint.keep + 2) * checkpoint,
        "steps": config.steps,
        "epochs": _epochs(config, data),
        "data": data if any(d["pairs"] is not None for d in known) else None,
        "data_notes": [d["note"] for d in known if d["note"]],
        "training_flops": flops * config.steps,
        "estimate": _estimate(config, flops, mesh=mesh, peak=peak_tflops, mfu=mfu),
    }


def _paper_comparison(config: Config) -> dict[str, Any]:
    own = ARCHITECTURES[config.architecture]
    unused = tuple(f"{one}." for one in ARCHITECTURES.values() if one != own)
    row, departing = table3_row(config), departures(config)
    if (results := paper_result(row)) is not None:
        varied = ("", *ROWS[row].changes)
        results["departs_here"] = [d.key for d in departing if d.key not in varied]
    is_paper = not any(departure.key for departure in departing)
    costs = _PAPER_COSTS.get(row.removeprefix("En-Fr_"))
    return {
        "config": to_dict(config),
        "row": row,
        "paper_costs": costs if is_paper else None,
        "paper_results": results,
        "parsers": [s._asdict() for s in SETTINGS] if is_parser(config) else [],
        "differences": [
            {"key": key, "base": base, "here": here}
            for key, base, here in differences(paper_model(config), config)
            # The section of the other architecture has no effect.
            if not key.startswith(unused)
        ],
        "variations": [variation._asdict() for variation in variations(config)],
        "exact": [{"name": m.name, "paper": m.paper} for m in matches(config)],
        "departures": [departure._asdict() for departure in departing],
    }


def _flops_of_a_pair(config: Config) -> dict[str, float]:
    lengths = dict.fromkeys(("source_length", "target_length"), SENTENCE_LENGTH)
    flops = sum(training_flops(config.network, **lengths).values()) / SENTENCE_LENGTH
    flops *= config.training.passes
    return {"sentence_length": SENTENCE_LENGTH, "flops": flops}


def _learning_rate(config: Config) -> dict[str, float]:
    """Returns the peak learning rate of the run, its step, and the last one."""
    step = min(config.optimizer.warmup_steps, config.steps)
    schedule = make_schedule(config.optimizer, d_model=config.network.d_model)
    peak, last = (float(schedule(number - 1)) for number in (step, config.steps))
    return {"peak": peak, "step": step, "last": last}


def _compute_dtype(config: Config, mesh: Mesh) -> str:
    platform = mesh.devices.flat[0].platform
    return resolve_compute_dtype(config.network.compute_dtype, platform)


def _batch(config: Config, mesh: Mesh) -> dict[str, Any]:
    *shorter, (rows, length) = batch_layout(config, mesh).shapes
    network = config.network
    return {
        "slots_per_side": rows * length,
        "rows": rows,
        "row_length": length,
        "devices": mesh.size,
        "mesh": dict(mesh.shape),
        "rows_per_device": rows // row_shards(mesh),
        "empty_rows": rows - longest_shape(config)[0],
        "layout": config.data.layout,
        "shorter_rows": [list(shape) for shape in reversed(shorter)],
        "micro_batches": config.training.micro_batches,  # 0 is for auto
        "compute_dtype": _compute_dtype(config, mesh),
        "remat": isinstance(network, TransformerConfig) and network.remat,
    }


def _memory(
    config: Config, shard: TrainState, compiled: Compiled, *, rows: int
) -> dict[str, Any]:
    """Returns the sizes of one device's arrays and the compiler's analysis."""
    # All arrays of a batch but `rows` have shape [rows, length].
    slots = (len(Batch._fields) - 1) * longest_shape(config)[1] + 1
    trained = num_bytes(trained_part(shard.params, config.training.frozen))
    return {
        "platform": compiled.platform,
        "parameters": num_bytes(shard.params),
        "frozen": num_bytes(shard.params) - trained,
        "optimizer": num_bytes(shard.optimizer),
        "ema": num_bytes(shard.ema),
        "gradients": trained,
        "batch": rows * slots * 4,  # int32
        "compiler": {**compiled.memory._asdict(), "total": compiled.memory.total},
    }


def _epochs(config: Config, data: Mapping[str, Any] | None) -> float | None:
    """Returns the slots of the run divided by the subwords of the longer side."""
    train = (data or {}).get("train") or {}
    if not (lengths := train.get("mean_length")):
        return None
    subwords: float = train["pairs"] * max(lengths.values())
    return config.steps * math.prod(longest_shape(config)) / subwords


def _estimate(
    config: Config, flops_per_step: float, *, mesh: Mesh, peak: float, mfu: float
) -> dict[str, Any] | None:
    """Estimates the hours of a training, without evaluation and checkpoints.

    Args:
      flops_per_step: on all devices.
      peak: of one device, in 10^12 operations per second; 0 if unknown.
      mfu: share of the peak that training reaches ("model FLOPs utilisation").

    Returns:
      None if the peak is unknown.
    """
    if not peak:
        return None
    seconds = config.steps * flops_per_step / (mesh.size * peak * 1e12 * mfu)
    return {
        "hours": seconds / 3600,
        "devices": mesh.size,
        "peak_tflops": peak,
        "mfu": mfu,
        "compute_dtype": _compute_dtype(config, mesh),
    }
