"""What a training step, and a search, would cost on devices that are not here.

All is estimated from the programs compiled for them: nothing is run.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from t2t_jax.config import Config
from t2t_jax.decoding.engine.chunked_decode import (
    advance,
    chunk_ends,
    make_search,
    on_devices,
    start,
)
from t2t_jax.decoding.search.static_params import params_from_config
from t2t_jax.devices.sharding.mesh import row_shards
from t2t_jax.devices.topology import Topology
from t2t_jax.files import write_output
from t2t_jax.model.architectures import make_module, step_model
from t2t_jax.run.description.costs import (
    SENTENCE_LENGTH,
    Compiled,
    analyze,
    longest_shape,
    num_bytes,
    state_shapes,
)
from t2t_jax.run.description.program_costs import ProgramCosts
from t2t_jax.run.device_choices import choose_attention
from t2t_jax.training.compiled_step import USABLE
from t2t_jax.training.state import TrainState
from t2t_jax.types import PyTree

_MOST_PARTS = 5
_PARTS = (2, 4, 8, 16, 32, 64, 128)
_MUCH = 0.1
"""Share of a step that is worth a change."""


class TopologyRequest(NamedTuple):
    """What to compile for devices that are not here.

    Attributes:
      decode: whether to compile the search too.
      save_hlo: file to write the program of the step to; "" for none.
    """

    topology: Topology
    decode: bool = False
    save_hlo: str = ""


def topology_costs(
    config: Config,
    compiled: Compiled,
    *,
    shard: TrainState,
    mesh: Mesh,
    request: TopologyRequest | None,
) -> dict[str, Any]:
    """Estimates the costs of a step on each of the devices, as JSON values.

    Args:
      shard: shapes of a device's shard of the state.

    Returns:
      Nothing without a request. Times are None where the compiler rejects the program,
      as it does not fit.
    """
    if request is None:
        return {}
    topology, decode, save_hlo = request
    if save_hlo and compiled.text:
        write_output(save_hlo, compiled.text, what="operations of the step")
    chosen, note = choose_attention(config, mesh)
    kernel = getattr(chosen.network, "attention", "").replace("auto", "plain")
    costs = {
        "topology": topology.text,
        "devices": mesh.size,
        "attention": kernel,
        "attention_note": note if kernel == "plain" else "",
        "bytes_parameters": num_bytes(shard.params),
        "bytes_optimizer": num_bytes((shard.optimizer, shard.ema)),
        **_estimates(compiled, mesh, topology),
    }
    ms = costs["estimated_ms"]
    costs["estimated_hours"] = None if ms is None else ms * config.steps / 3.6e6
    costs["advice"] = advise(config, costs, mesh=mesh)
    if decode:
        costs["decode"] = _search_costs(config, mesh, topology)
    return costs


def _estimates(compiled: Compiled, mesh: Mesh, topology: Topology) -> dict[str, Any]:
    """Estimates the costs of a program on one device."""
    memory, target = compiled.memory, topology.target
    usable = int(USABLE * target.memory)
    found: dict[str, Any] = {
        "fits": bool(compiled.text) and memory.total <= usable,
        "bytes_needed": memory.total,
        "bytes_temporary": memory.temporaries,
        "device_memory": usable,
        **dict.fromkeys(("flops", "bytes_accessed", "estimated_ms", "bound_by")),
        **{"parts": [], "collectives": [], "custom_calls": {}},
    }
    if not compiled.text:
        return found
    costs = ProgramCosts(compiled.text, topology)
    flops, moved, bounds = costs.flops, costs.bytes, costs.bounds
    if not target.gpu:
        # The text has neither all products nor what stays in a TPU's own memory.
        flops, moved = compiled.flops / mesh.size, compiled.bytes
        by_products = flops / target.peak > moved / target.bandwidth
        bound = "products" if by_products else "memory"
        bounds = {"links": bounds["links"], bound: costs.ms - bounds["links"]}
    return found | {
        "flops": flops,
        "bytes_accessed": moved,
        "estimated_ms": costs.ms,
        "bound_by": max(bounds, key=lambda bound: bounds[bound]),
        "parts": [
            {"part": part, "direction": direction, "ms": ms}
            for (part, direction), ms in [*costs.parts.items()][:_MOST_PARTS]
        ],
        "collectives": [
            {**vars(one), "hidden": one.exposed_ms <= _MUCH * one.ms}
            for one in costs.collectives.values()
        ],
        "custom_calls": costs.calls,
    }


def advise(config: Config, costs: Mapping[str, Any], *, mesh: Mesh) -> str:
    """Returns the first change that a step needs, or would gain from; "" for none.

    Args:
      costs: from `topology_costs`.
    """
    training, rows = config.training, longest_shape(config)[0]
    rows_here = -(-rows // row_shards(mesh))
    padding = rows_here * row_shards(mesh) - rows
    data = 1 if config.mesh.shard_optimizer else mesh.shape["data"]
    if not costs["fits"]:
        return f"it does not fit: {_fitting(config, costs, mesh, rows_here, data)}"
    spare, ms = costs["device_memory"] - costs["bytes_needed"], costs["estimated_ms"]
    more = costs["bytes_temporary"] * (training.micro_batches - 1)
    update = sum(one["ms"] for one in costs["parts"] if one["part"] == "optimizer")
    exposed = sum(one["exposed_ms"] for one in costs["collectives"])
    links = sum(one["ms"] for one in costs["collectives"])
    if padding > _MUCH * rows:
        return f"data.tokens_per_batch: {padding} of {rows + padding} rows are empty"
    # An all-gather of the parameters is half an all-reduce of their gradients.
    if data > 1 and update * (1 - 1 / data) - links / 2 > _MUCH * ms:
        return "mesh.shard_optimizer=True: each device updates a part of the parameters"
    if exposed > _MUCH * ms:
        return "more data.tokens_per_batch: the links take as long for any batch"
    return "training.micro_batches=1: it would fit" if 0 < more <= spare else ""


def _fitting(
    config: Config, costs: Mapping[str, Any], mesh: Mesh, rows: int, data: int
) -> str:
    """Returns the first change with which a step would fit.

    Args:
      rows: of a device.
      data: devices over which the moments could be split.
    """
    network, temporaries = config.network, costs["bytes_temporary"]
    excess = costs["bytes_needed"] - costs["device_memory"]
    state = costs["bytes_parameters"] + costs["bytes_optimizer"]
    # Logits and their gradient, float32, on devices that do not split the vocabulary.
    slots = rows * longest_shape(config)[1] // mesh.shape["tensor"]
    logits = 8 * slots * network.vocab_size * (config.training.loss_chunks == 1)
    parts = [n for n in _PARTS if n <= rows and excess <= temporaries * (1 - 1 / n)]
    moments = costs["bytes_optimizer"] * (1 - 1 / data)
    needs = {
        "mesh.shard_optimizer=True": excess <= moments,
        "more devices, with mesh.fsdp": state > costs["device_memory"],
        "training.loss_chunks=8": excess <= logits * (1 - 1 / 8),
        f"training.micro_batches={min(parts, default=1)}": bool(parts),
        "model.remat=True": not getattr(network, "remat", True),
        "fewer data.tokens_per_batch, or more devices": True,
    }
    return next(text for text, helps in needs.items() if helps)


def _search_costs(config: Config, mesh: Mesh, topology: Topology) -> dict[str, Any]:
    """Estimates the costs of one position of the search, as JSON values.

    Returns:
      As `topology_costs` of a step; `sentences_per_second` is of all devices, for
      outputs as long as their sources.
    """
    decoding, devices = config.decoding, mesh.devices.reshape(-1)
    flat = Mesh(devices, ("devices",), axis_types=(AxisType.Auto,))

    def place(tree: PyTree, *axes: str) -> PyTree:
        where = NamedSharding(flat, PartitionSpec(*axes))
        return jax.tree.map(lambda leaf: leaf.update(sharding=where), tree)

    module = make_module(config.network, devices=devices.tolist())
    params = place(state_shapes(config).params)
    model = step_model(module, params, compute_dtype=decoding.compute_dtype)
    longest = decoding.longest_output(SENTENCE_LENGTH)
    rows = max(1, decoding.tokens_per_batch // longest)
    search = make_search(model, params_from_config(decoding))
    first_end = chunk_ends(longest, SENTENCE_LENGTH)[0]
    sizes = (decoding.max_extra_tokens, longest, first_end)
    begin = functools.partial(on_devices, start, flat, sizes)
    source = jax.ShapeDtypeStruct((flat.size, rows, SENTENCE_LENGTH), jnp.int32)
    with jax.default_device(topology.target.platform):  # `past_dtype` is that of it.
        memory, state = place(jax.eval_shape(begin, search, (source, {})), "devices")
    until = place(jax.ShapeDtypeStruct((), jnp.int32))
    lower = functools.partial(advance.lower, flat, (search, until), memory, state)
    costs = _estimates(analyze(lower, mesh, topology=topology), mesh, topology)
    for one in costs["parts"]:
        if one["part"] == "optimizer":  # what is not of the model
            one["part"] = "search"
    seconds = SENTENCE_LENGTH * (costs["estimated_ms"] or 0.0) / 1e3
    speed = rows * flat.size / seconds if seconds else None
    found: dict[str, Any] = {"rows": rows, "source_tokens": SENTENCE_LENGTH}
    found |= {"beam_size": decoding.beam_size, "sentences_per_second": speed}
    return found | costs
