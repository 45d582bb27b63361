import dataclasses
import re
from functools import cache, partial

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.devices.sharding.rules import path_of
from t2t_jax.training.config import TrainingConfig
from tests.tiers import soak
from tests.training.copy_task import CONFIG, Trainer, batches

SIZES = {"s32": 4, "f32": 4, "bf16": 2, "u32": 4}
MESH_2x2x2 = {"fsdp": 2, "tensor": 2}
SIMCUT = TrainingConfig(simcut=3.0, simcut_probability=0.3)
R_DROP, PLAIN = TrainingConfig(r_drop=5.0), TrainingConfig(micro_batches=1)
OTHER = dataclasses.replace(
    CONFIG,
    num_decoder_layers=2,
    activation="swish",
    attention_biases=True,
    output_bias=True,
    scale_embeddings=False,
    position_rates="tensor2tensor",
    first_position=2,
    start="zero",
    tying="decoder",
)
"""A model of another toolkit."""


@cache
class Step(Trainer):
    """A training step, compiled once however often it is asked for."""

    def __init__(self, devices, config, mesh, changed):
        changed = {"model": vars(config), "mesh": dict(mesh), **dict(changed)}
        super().__init__(devices, **changed)

    @property
    def memory(self):
        return self.compiled.memory_analysis()

    def first(self):
        """Takes the first step: what it reports, and Adam's first moments.

        These are a tenth of the gradient.
        """
        state, output = self.step(self.state, batches(4)[3])
        return output, jax.device_get(state.optimizer[0].mu)

    def exchanged(self):
        """Bytes of each kind of exchange between devices, of the compiled program."""
        found = {}
        pattern = r"= (.*?) (all-reduce|all-gather|reduce-scatter)(?:-start)?\("
        for shapes, kind in re.findall(pattern, self.compiled.as_text()):
            for dtype, shape in re.findall(r"(f32|bf16|s32|u32)\[([\d,]*)\]", shapes):
                size = np.prod([int(n) for n in shape.split(",") if n] or [1])
                found[kind] = found.get(kind, 0) + int(size) * SIZES[dtype]
        return found


def step_of(devices=8, *, config=CONFIG, mesh=(), training=PLAIN, **changed):
    changed["training"] = training
    return Step(devices, config, tuple(dict(mesh).items()), tuple(changed.items()))


@pytest.mark.parametrize(
    ("training", "config", "devices", "mesh", "parts"),
    [
        (PLAIN, CONFIG, 1, {}, (4, 1)),
        soak(PLAIN, CONFIG, 1, {}, (1, 3)),
        (PLAIN, CONFIG, 8, {}, (1, 1)),
        soak(PLAIN, CONFIG, 8, {}, (2, 1)),
        soak(PLAIN, CONFIG, 8, {"fsdp": 2}, (2, 1)),
        soak(PLAIN, CONFIG, 8, MESH_2x2x2, (1, 1)),
        (PLAIN, CONFIG, 8, MESH_2x2x2, (4, 2)),
        soak(PLAIN, CONFIG, 8, {"data": 1, "fsdp": 4, "tensor": 2}, (1, 1)),
        soak(PLAIN, OTHER, 8, MESH_2x2x2, (2, 2)),
        (PLAIN, OTHER, 8, {}, (1, 1)),
        soak(SIMCUT, CONFIG, 8, {}, (1, 1)),
        (SIMCUT, CONFIG, 8, MESH_2x2x2, (2, 1)),
        soak(SIMCUT, CONFIG, 1, {}, (4, 3)),
        (R_DROP, CONFIG, 8, {}, (2, 2)),
        soak(R_DROP, CONFIG, 8, {"fsdp": 2}, (2, 1)),
    ],
)
def test_one_gradient_however_it_is_split(training, config, devices, mesh, parts):
    whole = step_of(1, training=training, config=config)
    split = dataclasses.replace(training, micro_batches=parts[0], loss_chunks=parts[1])
    parted = step_of(devices, training=split, config=config, mesh=mesh)
    require_same_gradient(parted.first(), whole.first())


def require_same_gradient(found, expected):
    (ours, moments), (output, wanted) = found, expected
    assert ours.sums[2:6] == output.sums[2:6]
    for name in ("loss", "nll", "consistency"):
        sums = (getattr(one.sums, name) for one in (ours, output))
        if output.sums.consistency is not None or name != "consistency":
            assert_allclose(*sums, rtol=1e-5)
    assert_allclose(ours.gradient_norm, output.gradient_norm, rtol=1e-5)
    # float32 sums over 100 tokens in another order; atol: where they cancel
    jax.tree.map(partial(assert_allclose, rtol=2e-5, atol=1e-7), moments, wanted)


def test_one_gradient_with_the_moments_split():
    split = step_of(shard_optimizer=True)
    require_same_gradient(split.first(), step_of(1).first())
    sizes = [step.memory.argument_size_in_bytes for step in (split, step_of())]
    # A third is parameters, and two thirds moments, of which an eighth is left.
    assert sizes[0] < 0.5 * sizes[1]


def test_every_bias_but_that_of_the_keys_is_trained():
    _, moments = step_of(1, config=OTHER).first()
    leaves = jax.tree_util.tree_leaves_with_path(moments)
    largest = {path_of(keys): np.abs(leaf).max() for keys, leaf in leaves}
    biases = {path for path in largest if path.endswith("bias")}
    assert {"target_embedding/bias", "decoder/layer_1/cross_attention/output/bias"} < (
        biases
    )
    # A bias of the keys adds the same to all scores of a query: only rounding is left.
    of_keys = {path for path in biases if path.endswith("key/bias")}
    assert len(of_keys) == 1 + 2 * 2
    assert max(largest[path] for path in of_keys) < 1e-8
    assert min(largest[path] for path in set(largest) - of_keys) > 1e-6


def test_micro_batches_are_exchanged_once_and_the_embedding_once():
    parameters = sum(x.size for x in jax.tree.leaves(step_of(1).state.params))
    for micro_batches in (1, 2):
        training = TrainingConfig(micro_batches=micro_batches)
        exchanged = step_of(training=training).exchanged()
        # Beside the gradients there are a few scalars.
        assert 4 * parameters <= exchanged["all-reduce"] <= 4 * parameters + 64
        assert set(exchanged) == {"all-reduce"}


def test_micro_batches_save_memory():
    parts = step_of(1, training=TrainingConfig(micro_batches=4)).memory
    assert parts.temp_size_in_bytes < 0.6 * step_of(1).memory.temp_size_in_bytes


@pytest.mark.parametrize(
    ("parts", "devices", "mesh"),
    [
        soak(2, 2, {"data": 1, "fsdp": 2}),
        soak(8, 8, {"data": 1, "fsdp": 4, "tensor": 2}),
        (4, 8, MESH_2x2x2),
    ],
)
def test_parameters_and_moments_really_are_split(parts, devices, mesh):
    # Wide enough for vectors to weigh little, and a vocabulary that nothing divides.
    config = dataclasses.replace(CONFIG, vocab_size=61, d_model=128, d_ff=512)
    split = step_of(devices, config=config, mesh=mesh)
    whole = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(split.shapes))
    share = split.memory.argument_size_in_bytes / whole
    assert share == pytest.approx(1 / parts, rel=0.1)


def test_gradients_are_rounded_where_they_are_exchanged_in_bfloat16():
    _, moments = step_of(1).first()
    _, rounded = step_of(training=TrainingConfig(gradient_dtype="bfloat16")).first()
    pairs = zip(jax.tree.leaves(moments), jax.tree.leaves(rounded), strict=True)
    norms = [(np.linalg.norm(a - b), np.linalg.norm(a)) for a, b in pairs]
    # Eight numbers, each rounded to 8 bits, and their sum.
    assert 1e-4 < max(error / norm for error, norm in norms if norm > 0) < 2e-2
