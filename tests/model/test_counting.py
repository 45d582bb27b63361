import functools
import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from flax import linen as nn

from t2t_jax.model.architectures import make_module
from t2t_jax.model.config import RNNConfig, TransformerConfig
from t2t_jax.model.counting import count_parameters, training_flops
from t2t_jax.model.transformer import Transformer
from tests.jaxprs import equations
from tests.model.tiny import TINY, TINY_RNN

TOKEN = jnp.ones((1, 1), int)
WIDE = {"d_model": 62, "d_ff": 127, "d_k": 41, "d_v": 43}
BASE = TransformerConfig()
BIG = {"d_model": 1024, "d_ff": 4096, "num_heads": 16}


def real_sizes(config):
    """Initialises without computing anything, and counts."""
    shapes = jax.eval_shape(make_module(config).init, jax.random.key(0), TOKEN, TOKEN)
    made = {"embedding": 0, "encoder": 0, "decoder": 0}
    for path, leaf in jax.tree_util.tree_leaves_with_path(shapes["params"]):
        part = path[0].key
        is_table = part not in made or path[-2].key == "learned"
        made["embedding" if is_table else part] += leaf.size
    return made


LEARNED = {"positions": "learned", "max_positions": 31}
SOURCE_OF_ITS_OWN = {"source_vocab_size": 23}
ROTARY = {"positions": "rotary", "d_k": 6}


@pytest.mark.parametrize(
    "config",
    [
        *(replace(BASE, **changes) for changes in ({}, {"d_k": 16}, BIG)),
        *(
            replace(TINY, **changes)
            for changes in (
                *({"tying": tying} for tying in ("decoder", "none")),
                *({"tying": n, **SOURCE_OF_ITS_OWN} for n in ("decoder", "none")),
                {"norm_position": "pre", **LEARNED},
                {"tying": "none", "norm_position": "pre", **LEARNED},
                {"attention_biases": True, "num_decoder_layers": 1},
                {"norm_position": "pre", "num_decoder_layers": 5, "norm": "rms"},
                {"activation": "geglu"},
                {"output_bias": True, "tying": "none", "scale_embeddings": False},
                {**LEARNED, "first_position": 3},
            )
        ),
        RNNConfig(),
        *(
            replace(TINY_RNN, **changes)
            for changes in (
                {},
                {"num_layers": 3, "tying": "decoder"},
                {"tying": "none", **SOURCE_OF_ITS_OWN},
            )
        ),
    ],
)
def test_the_formula_counts_what_initialisation_makes(config):
    assert count_parameters(config)._asdict() == real_sizes(config)


@pytest.mark.parametrize(
    ("config", "parameters", "flops"),
    [(BASE, 63_045_632, 381.0e6), (replace(BASE, **BIG), 214_171_648, 1290.5e6)],
)
def test_the_papers_models_by_hand(config, parameters, flops):
    assert count_parameters(config).total == parameters
    of_28 = training_flops(config, source_length=28, target_length=28)
    assert sum(of_28.values()) / 28 == pytest.approx(flops, rel=1e-3)


@pytest.mark.parametrize("remat", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm_position": "pre", "num_decoder_layers": 2},
        {"norm_position": "pre", "activation": "swiglu", "norm": "rms", **ROTARY},
    ],
    ids=["post", "pre", "blocks"],
)
def test_it_counts_the_products_of_a_gradient(changes, remat):
    config = replace(TINY, num_layers=1, dropout=0.1, remat=remat, **changes)
    model = Transformer(config)
    inputs = jnp.ones((1, 17), int), jnp.ones((1, 23), int)
    params = jax.eval_shape(model.init, jax.random.key(0), *inputs)

    def total(params):
        keys = {"dropout": jax.random.key(1)}
        return model.apply(params, *inputs, deterministic=False, rngs=keys).sum()

    counted = 0
    for equation in equations(jax.make_jaxpr(jax.grad(total))(params)):
        if equation.primitive.name == "dot_general":
            (summed, _), _ = equation.params["dimension_numbers"]
            sizes = [equation.invars[0].aval.shape[axis] for axis in summed]
            counted += 2 * math.prod((*sizes, *equation.outvars[0].aval.shape))
    flops = training_flops(config, source_length=17, target_length=23)
    assert counted == sum(flops.values())


@pytest.mark.parametrize(
    ("config", "lengths", "most"),
    [
        # It counts norms, softmax and residuals too, which matter at this size.
        (replace(TINY, **WIDE, num_decoder_layers=3), (17, 23), 1.15),
        # It counts the additions of gates, biases and attention too.
        (replace(TINY_RNN, num_layers=1, d_model=62, d_hidden=106), (2, 3), 1.05),
    ],
)
def test_the_compiler_counts_as_many_products(config, lengths, most, monkeypatch):
    # The compiler counts the body of a loop once, so there must be no loop.
    monkeypatch.setattr(nn, "scan", functools.partial(nn.scan, unroll=3))
    module = make_module(config)
    params = jax.eval_shape(module.init, jax.random.key(0), TOKEN, TOKEN)
    source, target = (jnp.ones((1, length), int) for length in lengths)
    compiled = jax.jit(module.apply).lower(params, source, target).compile()
    count = training_flops(config, source_length=lengths[0], target_length=lengths[1])
    assert 1 < compiled.cost_analysis()["flops"] / (sum(count.values()) / 3) < most


def test_the_rnn_s_attention_compares_projects_and_sums_by_hand():
    config = replace(TINY_RNN, d_hidden=22, d_attention=17)
    count = training_flops(config, source_length=5, target_length=7)
    # Keys of 5 and queries of 7 positions; for each of the 35 pairs a product with v
    # and a weighted sum of what is looked at; forward and twice backward, 2 each.
    products = 5 * 22 * 17 + 7 * 22 * 17 + 35 * (17 + 22)
    assert count["attention"] == 6 * products
