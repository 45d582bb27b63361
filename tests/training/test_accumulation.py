import dataclasses
import re
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.transformer import Transformer
from t2t_jax.sharding.config import MeshConfig
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.sharding.rules import make_global_batch, path_of
from t2t_jax.training.config import TrainingConfig
from t2t_jax.training.state import init_state, state_shardings
from t2t_jax.training.step import accumulate_gradients, lower_step, make_train_step
from tests.training.copy_task import (
    KEY,
    LENGTH,
    V,
    batch_of,
    pair_of,
    sentences,
)

ROWS = 16
CONFIG = TransformerConfig(
    vocab_size=V,
    num_layers=1,
    d_model=16,
    d_ff=24,
    num_heads=2,
    d_k=4,
    d_v=8,
    dropout=0.3,
)
SIZES = {"s32": 4, "f32": 4, "bf16": 2, "u32": 4}


@cache
class Step:
    """A training step, compiled once however often it is asked for."""

    def __init__(
        self,
        *,
        devices=8,
        training=None,
        shard_optimizer=False,
        config=CONFIG,
        **mesh,
    ):
        module, optimizer = Transformer(config), optax.adam(1e-3)
        self.mesh = make_mesh(jax.devices()[:devices], config=MeshConfig(**mesh))
        init = partial(init_state, module, optimizer)
        shapes = jax.eval_shape(init, KEY)
        places = state_shardings(shapes, self.mesh, shard_optimizer=shard_optimizer)
        self.init = jax.jit(init, out_shardings=places)
        step = make_train_step(
            training or TrainingConfig(),
            module=module,
            optimizer=optimizer,
            mesh=self.mesh,
            shardings=places,
        )
        lowered = lower_step(step, shapes, batch_shape=(ROWS, LENGTH))
        self.compiled = lowered.compile()

    @property
    def memory(self):
        return self.compiled.memory_analysis()

    def first(self):
        """Takes the first step: what it reports, and Adam's first moments.

        These are a tenth of the gradient.
        """
        rows = make_global_batch(batch(), self.mesh)
        state, output = self.compiled(self.init(KEY), rows, KEY)
        return jax.device_get((output, state.optimizer[0].mu))

    def exchanged(self):
        """Bytes of each kind of exchange between devices, of the compiled program."""
        found = {}
        pattern = r"= (.*?) (all-reduce|all-gather|reduce-scatter)(?:-start)?\("
        for shapes, kind in re.findall(pattern, self.compiled.as_text()):
            for dtype, shape in re.findall(r"(f32|bf16|s32|u32)\[([\d,]*)\]", shapes):
                size = np.prod([int(n) for n in shape.split(",") if n] or [1])
                found[kind] = found.get(kind, 0) + int(size) * SIZES[dtype]
        return found


def batch():
    return batch_of([pair_of(s) for s in sentences(3, 13)], rows=ROWS)


@pytest.fixture(scope="module")
def expected():
    return Step(devices=1).first()


@pytest.mark.parametrize(
    "changed",
    [
        {"devices": 1, "training": TrainingConfig(micro_batches=4)},
        {"devices": 1, "training": TrainingConfig(loss_chunks=3)},
        {},
        {"training": TrainingConfig(micro_batches=2)},
        {"shard_optimizer": True},
        pytest.param(
            {"fsdp": 2, "training": TrainingConfig(micro_batches=2)},
            marks=pytest.mark.soak,
        ),
        {"fsdp": 2, "tensor": 2},
        {
            "fsdp": 2,
            "tensor": 2,
            "training": TrainingConfig(micro_batches=4, loss_chunks=2),
        },
        pytest.param({"data": 1, "fsdp": 4, "tensor": 2}, marks=pytest.mark.soak),
    ],
    ids=str,
)
def test_one_gradient_from_one_state_however_it_is_split(expected, changed):
    output, moments = expected
    found, found_moments = Step(**changed).first()
    counts = ("correct", "target_tokens", "source_tokens", "slots")
    for name in counts:
        assert getattr(found.sums, name) == getattr(output.sums, name)
    np.testing.assert_allclose(found.sums.loss, output.sums.loss, rtol=1e-5)
    np.testing.assert_allclose(found.gradient_norm, output.gradient_norm, rtol=1e-5)
    # float32 sums over 100 tokens in another order; atol: where they cancel
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-8),
        found_moments,
        moments,
    )


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


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"fsdp": 2, "tensor": 2}, marks=pytest.mark.soak),
        {"training": TrainingConfig(micro_batches=2, loss_chunks=2)},
    ],
    ids=str,
)
def test_a_model_of_another_toolkit_has_one_gradient_too(changed):
    output, moments = Step(devices=1, config=OTHER).first()
    found, found_moments = Step(config=OTHER, **changed).first()
    np.testing.assert_allclose(found.sums.loss, output.sums.loss, rtol=1e-5)
    # float32 sums over 100 tokens in another order; atol: where they cancel
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-8),
        found_moments,
        moments,
    )


def test_every_bias_but_that_of_the_keys_is_trained():
    _, moments = Step(devices=1, config=OTHER).first()
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
    shapes = jax.eval_shape(Step(devices=1).init, KEY).params
    parameters = sum(x.size for x in jax.tree.leaves(shapes))
    for micro_batches in (1, 2):
        exchanged = Step(
            training=TrainingConfig(micro_batches=micro_batches)
        ).exchanged()
        # Beside the gradients there are a few scalars.
        assert 4 * parameters <= exchanged["all-reduce"] <= 4 * parameters + 64
        assert set(exchanged) == {"all-reduce"}


def test_micro_batches_save_memory():
    parts = Step(devices=1, training=TrainingConfig(micro_batches=4)).memory
    assert parts.temp_size_in_bytes < 0.6 * Step(devices=1).memory.temp_size_in_bytes


@pytest.mark.parametrize(
    ("parts", "changed"),
    [
        (2, {"data": 1, "fsdp": 2}),
        (4, {"data": 1, "fsdp": 4}),
        (8, {"data": 1, "fsdp": 8}),
        (8, {"data": 1, "fsdp": 4, "tensor": 2}),
        (4, {"fsdp": 2, "tensor": 2}),
    ],
)
def test_parameters_and_moments_really_are_split(parts, changed):
    # Wide enough for vectors to weigh little, and a vocabulary that nothing divides.
    config = dataclasses.replace(CONFIG, vocab_size=61, d_model=128, d_ff=512)
    devices = parts * (2 if "data" not in changed else 1)
    whole = Step(devices=1, config=config).memory
    split = Step(devices=devices, config=config, **changed).memory
    share = split.argument_size_in_bytes / whole.argument_size_in_bytes
    assert share == pytest.approx(1 / parts, rel=0.1)


def test_moments_are_split_while_parameters_are_not():
    arguments, moments = (
        Step(**changed).memory.argument_size_in_bytes
        for changed in ({}, {"shard_optimizer": True})
    )
    # A third is parameters, and two thirds moments, of which an eighth is left.
    assert moments < 0.5 * arguments


def test_gradients_are_rounded_where_they_are_exchanged_in_bfloat16(expected):
    _, moments = expected
    _, rounded = Step(training=TrainingConfig(gradient_dtype="bfloat16")).first()
    pairs = zip(jax.tree.leaves(moments), jax.tree.leaves(rounded), strict=True)
    differences = [
        np.linalg.norm(a - b) / np.linalg.norm(a)
        for a, b in pairs
        if np.linalg.norm(a) > 0
    ]
    # Eight numbers, each rounded to 8 bits, and their sum.
    assert 1e-4 < max(differences) < 2e-2


def test_the_sums_are_those_of_all_parts():
    mesh = make_mesh(jax.devices()[:2])

    def sums(params, part):
        total = jnp.sum(params * part.source)
        return total, jnp.sum(part.source)

    rows = make_global_batch(batch(), mesh)
    for micro_batches in (1, 4):
        gradient, other = jax.jit(
            partial(
                accumulate_gradients,
                sums,
                mesh=mesh,
                micro_batches=micro_batches,
            )
        )(jnp.float32(3.0), rows)
        assert gradient == other == batch().source.sum()
