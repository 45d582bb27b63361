"""What is bfloat16 where `compute_dtype` is, and that it comes near float32."""

import dataclasses
import functools
from types import SimpleNamespace

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.devices.processor import CPU_DTYPE, resolve_compute_dtype
from t2t_jax.functional.losses import label_smoothed_nll
from t2t_jax.functional.masks import segments_of
from t2t_jax.model.architectures import make_module
from t2t_jax.model.config import RNNConfig, TransformerConfig
from t2t_jax.model.defaults import compute_dtype
from t2t_jax.model.transformer import Transformer
from tests.jaxprs import dtypes
from tests.model.tiny import SOURCE, TARGET, TINY, TINY_RNN, tiny_apply, tiny_params
from tests.training.copy_task import LEARNER, Trainer, batch_of, drawn_pairs

LOW = dataclasses.replace(TINY, compute_dtype="bfloat16", attention_dropout=0.1)
REAL = np.asarray(TARGET) > 0


def loss(params, config=LOW, key=None):
    drops = {} if key is None else {"deterministic": False, "rngs": {"dropout": key}}
    logits = tiny_apply(SOURCE, TARGET, config=config, params=params, **drops)
    return label_smoothed_nll(logits, TARGET, label_smoothing=0.1)[0].mean(where=REAL)


def gradient(platform):
    """Traces a training step's gradient in bfloat16, dropout included."""
    key, params = jax.random.key(3), tiny_params()
    with jax.default_device(platform):  # which JAX's cache of traces goes by
        return jax.make_jaxpr(jax.grad(lambda params: loss(params, key=key)))(params)


@pytest.mark.parametrize("config", [TransformerConfig(), RNNConfig()])
def test_auto_is_the_default_and_follows_the_platform(config, monkeypatch):
    for dtype in ("bfloat16", "float32"):
        monkeypatch.setenv(CPU_DTYPE, dtype)
        assert compute_dtype(config) == resolve_compute_dtype("auto", "cpu") == dtype
    platforms = ("gpu", "cuda", "rocm", "tpu", "abacus")
    found = [resolve_compute_dtype(config.compute_dtype, name) for name in platforms]
    assert found == [*["bfloat16"] * 4, "float32"]


@pytest.mark.parametrize("config", [TINY, TINY_RNN])
def test_a_module_for_a_platform_has_decided_and_what_is_said_holds(config):
    tpus = [SimpleNamespace(platform="tpu")]
    assert make_module(config, devices=tpus).config.compute_dtype == "bfloat16"
    assert make_module(config).config == config
    said = dataclasses.replace(config, compute_dtype="float32")
    assert make_module(said, devices=tpus).config.compute_dtype == "float32"


def test_elsewhere_the_default_device_decides(monkeypatch):
    assert compute_dtype(TransformerConfig()) == "float32"  # these tests run on CPUs
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert compute_dtype(TransformerConfig()) == "bfloat16"
    with jax.default_device(jax.devices("cpu")[0]):
        assert compute_dtype(TransformerConfig()) == "float32"
    with jax.default_device("tpu"):
        assert compute_dtype(TransformerConfig()) == "bfloat16"


def test_parameters_and_their_gradients_are_float32():
    shapes = jax.eval_shape(Transformer(LOW).init, jax.random.key(0), SOURCE, TARGET)
    gradients = jax.eval_shape(jax.grad(loss), shapes["params"])
    leaves = jax.tree.leaves((shapes["params"], gradients))
    assert {leaf.dtype.name for leaf in leaves} == {"float32"}


def test_every_matrix_product_multiplies_bfloat16_forwards_and_backwards():
    # Sums of bfloat16 are float32; what is handed on is rounded after the product.
    products = dtypes(gradient("tpu"), "dot_general")
    assert set(products) == {("bfloat16", "bfloat16", "float32")}


def test_sums_exponentials_and_roots_are_float32_forwards_and_backwards():
    program = gradient("tpu")
    for primitive in ("reduce_sum", "exp", "log", "rsqrt", "reduce_max", "scatter-add"):
        found = {result for *_, result in dtypes(program, primitive)}
        assert found - {"int32", "uint32"} == {"float32"}, primitive


def test_steps_with_a_cache_in_bfloat16_are_near_the_full_pass():
    apply = functools.partial(tiny_apply, config=LOW, params=tiny_params())
    full, memory = apply(SOURCE, TARGET), apply(SOURCE, method="encode")
    assert memory.dtype == jnp.bfloat16
    cache = apply(memory, segments_of(SOURCE), length=7, method="init_cache")
    layers = jax.tree.leaves(cache.memory.layers)
    assert {leaf.dtype.name for leaf in layers} == {"bfloat16"}
    for position in range(7):
        tokens = TARGET[:, position : position + 1]
        logits, cache = apply(tokens, cache, jnp.int32(position), method="step")
        real = np.asarray(tokens[:, 0]) > 0
        # One rounding to 8 bits is 0.4 %; fused products are rounded elsewhere.
        assert_allclose(logits[real, 0], full[real, position], atol=0.05)


def test_the_gradient_points_where_that_of_float32_does():
    one, other = (dataclasses.replace(config, num_layers=1) for config in (LOW, TINY))
    params = jax.jit(Transformer(one).init)(jax.random.key(0), SOURCE, TARGET)
    low, high = (
        jax.flatten_util.ravel_pytree(jax.grad(loss)(params["params"], config))[0]
        for config in (one, other)
    )
    cosine = low @ high / jnp.linalg.norm(low) / jnp.linalg.norm(high)
    # Measured: 0.9993 to 0.99997, by the seed.
    assert 0.998 < cosine < 1


def test_bfloat16_learns_as_float32_does():
    losses = {}
    for dtype in ("float32", "bfloat16"):
        model = {**LEARNER, "compute_dtype": dtype}
        trainer = Trainer(rows=32, model=model, warmup_steps=10)
        state, losses[dtype] = trainer.state, []
        for n in range(20):
            state, output = trainer.step(state, batch_of(drawn_pairs(n, 32)))
            losses[dtype].append(output.sums.nll / output.sums.target_tokens)
    high, low = losses.values()
    assert high[-1] < 0.75 * high[0]
    assert not np.array_equal(high, low)
    assert_allclose(low, high, rtol=0.01)
