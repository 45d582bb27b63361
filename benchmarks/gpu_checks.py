"""Checks that a GPU computes what a CPU does; prints one JSON object.

    python benchmarks/gpu_checks.py loss --steps=20
    python benchmarks/gpu_checks.py attention
    python benchmarks/gpu_checks.py estimate
    python benchmarks/gpu_checks.py repeats

`loss`: the training step in float32, the same batches on the GPU and on the CPU.
`attention`: each kernel that the device has, forwards and backwards on packed rows,
beside plain attention in float32; with the time of each. `estimate`: what `describe
--topology` says of the paper's step on such a GPU, beside the time of that step.
`repeats`: a training, the same again, and one that was interrupted and resumed, with
XLA's own choice of operations and with deterministic ones: which of them end with the
same parameters, bit for bit. Without agreement of the first two the exit code is 1.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scaled_step import Trainee
from step_figures import machine, versions
from step_options import SIZES

from t2t_jax.checkpointing.reader import CheckpointReader
from t2t_jax.config import parse
from t2t_jax.config_files import load_config
from t2t_jax.devices.topology import TARGETS
from t2t_jax.functional.attention import attention
from t2t_jax.functional.fused_attention import FUSED
from t2t_jax.functional.masks import Segments
from t2t_jax.model.attention_kernels import resolve_attention
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.description.costs import longest_shape

LOSS_TOLERANCE = 1e-4
"""Of a loss, relative: float32 sums in another order, over 20 updates."""

ATTENTION_TOLERANCE = 2e-2
"""Of outputs and gradients in bfloat16, by ||x - reference|| / ||reference||."""

_REPEATS = 20
_OPERATIONS = {
    "cpu": {"default": ""},
    "gpu": {
        "default": "",
        "deterministic": "--xla_gpu_exclude_nondeterministic_ops=true",
    },
}


def check_loss(options: argparse.Namespace) -> dict[str, Any]:
    """Trains on both devices from the same state, with the same batches."""
    jax.config.update("jax_default_matmul_precision", "highest")  # no TF32
    config = dataclasses.replace(SIZES[options.size], compute_dtype="float32")
    shape = (8, 8) if options.size == "tiny" else (32, 32)
    losses = {}
    for platform in (options.device, "cpu"):
        device = jax.devices("cuda" if platform == "gpu" else platform)[0]
        with jax.default_device(device):
            trainee = Trainee(config, devices=[device], mesh="data", batch=shape)
            trainee.begin()
            outputs = [trainee.step(number) for number in range(options.steps)]
        losses[platform] = [
            float(o.sums.loss / jnp.maximum(o.sums.target_tokens, 1)) for o in outputs
        ]
    ours, reference = (np.array(losses[name]) for name in (options.device, "cpu"))
    difference = float(np.max(np.abs(ours - reference) / np.abs(reference)))
    return {
        "steps": options.steps,
        "losses": losses,
        "largest_relative_difference": difference,
        "tolerance": LOSS_TOLERANCE,
        "agrees": bool(difference <= LOSS_TOLERANCE),
    }


def packed_segments(rows: int, length: int, *, seed: int) -> np.ndarray[Any, Any]:
    """Draws packed rows of sentences of about 28 tokens, or of a quarter of a row."""
    draw, mean = np.random.default_rng(seed), min(28, max(2, length // 4))
    segments = np.zeros((rows, length), np.int32)
    for row in segments:
        start = number = 0
        while True:
            size = int(np.clip(draw.lognormal(np.log(mean), 0.5), 2, length))
            if start + size > length:
                break
            number += 1
            row[start : start + size] = number
            start += size
        if not number:
            row[:] = 1
    return segments


def check_attention(options: argparse.Namespace) -> dict[str, Any]:
    """Compares all kernels on encoder, decoder and cross-attention."""
    shape = (options.rows, options.heads, options.length, options.depth)
    query = packed_segments(options.rows, options.length, seed=0)
    draw = np.random.default_rng(1)
    arrays = [jnp.asarray(draw.normal(size=shape), jnp.float32) for _ in range(3)]
    # No loss depends on padding, where kernels return what they like.
    real = (query > 0)[:, None, :, None]
    given = jnp.asarray(draw.normal(size=shape) * real, jnp.float32)
    report: dict[str, Any] = {"shape": shape, "tolerance": ATTENTION_TOLERANCE}
    choice = resolve_attention(TransformerConfig(attention="cudnn"), options.device)
    uses = ("encoder", "decoder")
    for use in uses:
        segments = Segments(query, query, is_causal=use == "decoder")
        mask = segments.mask()
        of_all = {}
        reference = _both_ways(
            partial(attention, mask_xQxK=mask), [*arrays, given], jnp.float32
        )
        kernels: dict[str, Any] = {"plain": partial(attention, mask_xQxK=mask)}
        if choice.reason:
            of_all["cudnn"] = {"missing": choice.reason}
        else:
            kernels["cudnn"] = partial(FUSED["cudnn"], segments=segments)
        for name, kernel in kernels.items():
            of_all[name] = _compare(kernel, [*arrays, given], reference)
        report[use] = of_all
    found = [one for use in uses for one in report[use].values()]
    report["agrees"] = all(one.get("agrees", True) for one in found)
    return report


def _both_ways(function: Any, arrays: list[jax.Array], dtype: Any) -> list[Any]:
    """Returns the output and the gradients, in float32."""
    return [
        np.asarray(x, np.float32) for x in _compiled(function)(*_cast(arrays, dtype))
    ]


def _cast(arrays: list[jax.Array], dtype: Any) -> list[jax.Array]:
    # Rounded alike for the reference, so that only the arithmetic differs.
    return [x.astype(jnp.bfloat16).astype(dtype) for x in arrays]


def _compiled(function: Any) -> Any:
    @jax.jit
    def both(
        q: jax.Array, k: jax.Array, v: jax.Array, cotangent: jax.Array
    ) -> list[jax.Array]:
        context, pull_back = jax.vjp(function, q, k, v)
        return [context * (cotangent != 0), *pull_back(cotangent)]

    return both


def _compare(
    function: Any, arrays: list[jax.Array], reference: list[Any]
) -> dict[str, Any]:
    compiled, cast = _compiled(function), _cast(arrays, jnp.bfloat16)
    try:
        found = [np.asarray(x, np.float32) for x in compiled(*cast)]
    except Exception as error:  # Of compilers and drivers: of any type.
        return {"failed": f"{type(error).__name__}: {error}"[:500], "agrees": False}
    errors = [
        float(np.linalg.norm(x - y) / np.linalg.norm(y))
        for x, y in zip(found, reference, strict=True)
    ]
    seconds = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        jax.block_until_ready(compiled(*cast))
        seconds.append(time.perf_counter() - began)
    names = ("output", "query_gradient", "key_gradient", "value_gradient")
    return {
        "errors": dict(zip(names, errors, strict=True)),
        "agrees": all(error <= ATTENTION_TOLERANCE for error in errors),
        "median_ms": 1e3 * statistics.median(seconds),
    }


def check_estimate(options: argparse.Namespace) -> dict[str, Any]:
    """Compares the compiler's estimate of a configuration's step with its time."""
    device, found = jax.devices()[:1], {}
    kind = device[0].device_kind.lower()
    target = next((name for name in TARGETS if name in kind), "h100")
    keys = ("attention", "estimated_ms", "bound_by", "bytes_needed", "parts")
    names = options.configs.split(",")
    flags = ["--mode=describe", f"--topology=gpu:{target}:1", "--format=json"]
    describe = partial(_program, JAX_PLATFORMS="cpu")  # which takes minutes
    pool = ThreadPoolExecutor()
    texts = [pool.submit(describe, [*flags, f"--config={name}"]) for name in names]
    for name, text in zip(names, texts, strict=True):
        config = parse(load_config(name).to_dict())
        step = Trainee(
            config.model,
            devices=device,
            mesh="data",
            batch=longest_shape(config),
            training=config.training,
            full=True,
        )
        step.begin()
        step.seconds(3)
        times = [step.seconds(options.steps) for _ in range(5)]
        found[name] = {
            **{key: json.loads(text.result())[key] for key in keys},
            "median_ms": 1e3 * statistics.median(times) / options.steps,
            "peak_bytes": (device[0].memory_stats() or {}).get("peak_bytes_in_use"),
        }
    return {"target": target, "configs": found, "agrees": True}


def check_repeats(options: argparse.Namespace) -> dict[str, Any]:
    """Trains twice alike, and once with an interruption, through the command line."""
    steps, found = options.steps, {}
    flags = [*options.flags.split(), "--config.evaluation.every_steps=0"]
    given = os.environ.get("XLA_FLAGS", "")
    for name, xla in _OPERATIONS[options.device].items():
        sums: dict[str, Any] = {}
        with tempfile.TemporaryDirectory() as folder:
            for run in ("first", "again", "resumed"):
                path = Path(folder, run)
                for last in (steps // 2, steps) if run == "resumed" else (steps,):
                    ends = [f"--workdir={path}", f"--config.steps={last}"]
                    _program([*flags, *ends], XLA_FLAGS=f"{given} {xla}")
                meta = CheckpointReader(path / "checkpoints").read_verified_meta(steps)
                sums[run] = meta["checksums"]
        found[name] = {run: sums[run] == sums["first"] for run in ("again", "resumed")}
    return {"steps": steps, "same_bits": found, "agrees": True}


def _program(flags: list[str], **environment: str) -> str:
    """Runs the command line; returns its output."""
    return subprocess.run(
        [sys.executable, "-m", "t2t_jax.main", *flags],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def main() -> int:
    """Runs one check; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    checks = {
        "loss": check_loss,
        "attention": check_attention,
        "estimate": check_estimate,
        "repeats": check_repeats,
    }
    add("check", choices=checks)
    add("--configs", default="wmt_en_de,wmt_en_de_big", help="of `estimate`")
    add("--flags", default="--config=phrasebook", help="of the training of `repeats`")
    add("--device", choices=("gpu", "cpu"), default="gpu")
    add("--steps", type=int, default=20)
    add("--size", choices=SIZES, default="small")
    add("--rows", type=int, default=96)
    add("--length", type=int, default=256)
    add("--heads", type=int, default=8)
    add("--depth", type=int, default=64)
    options = parser.parse_args()
    report = checks[options.check](options)
    report["device"] = jax.devices()[0].device_kind
    report["versions"] = versions(["jax", "jaxlib"])
    report["hardware"] = machine()
    print(json.dumps(report))
    return 0 if report["agrees"] else 1


if __name__ == "__main__":
    sys.exit(main())
