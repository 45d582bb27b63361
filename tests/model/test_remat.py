"""Layers computed twice: the same numbers for less memory."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.masks import segments_of
from t2t_jax.model.transformer import Transformer
from tests.jaxprs import dtypes
from tests.model.tiny import SOURCE, TARGET, TINY, tiny_apply, tiny_params

KEPT = dataclasses.replace(TINY, attention_dropout=0.2, relu_dropout=0.1, dropout=0.3)
TWICE = dataclasses.replace(KEPT, remat=True)
ONE_LAYER = dataclasses.replace(KEPT, num_layers=1)
KEY = jax.random.key(5)
# float32 sums that the compiler fuses in another order
CLOSE = functools.partial(assert_allclose, rtol=1e-4, atol=1e-4)


def total(params, config):
    how = {"deterministic": False, "rngs": {"dropout": KEY}, "params": params}
    return jnp.sin(tiny_apply(SOURCE, TARGET, config=config, **how)).sum()


@functools.cache
def compiled(config):
    config = dataclasses.replace(config, num_layers=1)
    program = jax.jit(jax.value_and_grad(functools.partial(total, config=config)))
    return program.lower(tiny_params(ONE_LAYER)).compile()


def test_parameters_are_the_same_under_the_same_paths():
    inits = (jax.jit(Transformer(config).init) for config in (KEPT, TWICE))
    jax.tree.map(assert_array_equal, *(init(KEY, SOURCE, TARGET) for init in inits))


def test_values_masks_and_gradients_are_the_same():
    (kept, gradient), (twice, again) = (
        compiled(config)(tiny_params(ONE_LAYER)) for config in (KEPT, TWICE)
    )
    assert_array_equal(kept, twice)
    jax.tree.map(CLOSE, again, gradient)


@pytest.mark.soak
def test_other_toolkits_models_have_the_same_gradients():
    kept = dataclasses.replace(
        ONE_LAYER,
        activation="gelu",
        attention_biases=True,
        output_bias=True,
        start="zero",
        num_decoder_layers=2,
    )
    gradient, again = (
        jax.jit(jax.grad(functools.partial(total, config=config)))(tiny_params(kept))
        for config in (kept, dataclasses.replace(kept, remat=True))
    )
    jax.tree.map(CLOSE, again, gradient)


def kept_bytes(config):
    """Adds up what is kept of the forward pass, the parameters apart."""
    params = tiny_params(dataclasses.replace(config, remat=False))
    _, backwards = jax.eval_shape(
        lambda p: jax.vjp(functools.partial(total, config=config), p), params
    )
    size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(backwards))
    return size - sum(x.nbytes for x in jax.tree.leaves(params))


def test_of_three_layers_little_more_is_kept_than_what_enters_them():
    deep = dataclasses.replace(KEPT, num_layers=3)
    assert kept_bytes(dataclasses.replace(deep, remat=True)) < 0.3 * kept_bytes(deep)


def test_the_compiler_does_compute_twice():
    kept, twice = (
        compiled(config).cost_analysis()["flops"] for config in (KEPT, TWICE)
    )
    # A third forward pass beside one forward and two backward ones, without logits.
    assert 1.1 < twice / kept < 1.4


def test_decoding_computes_nothing_twice():
    programs = []
    for config in (KEPT, TWICE):
        apply = functools.partial(tiny_apply, config=config, params=tiny_params())
        memory = apply(SOURCE, method="encode")
        cache = apply(memory, segments_of(SOURCE), length=3, method="init_cache")
        step = functools.partial(apply, method="step")
        programs.append(jax.make_jaxpr(step)(TARGET[:, :1], cache, jnp.int32(0)))
    one, other = (dtypes(program, "dot_general") for program in programs)
    assert len(one) == len(other) > 0
    assert "checkpoint" not in str(programs[1])
