import dataclasses
import math

import jax
import jax.numpy as jnp
import pytest

from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.counting import count_parameters, training_flops
from t2t_jax.model.transformer import Transformer
from tests.jaxprs import equations
from tests.model.tiny import TINY

BASE = TransformerConfig()
BIG = {"d_model": 1024, "d_ff": 4096, "num_heads": 16}


def real_sizes(config):
    """Initialises without computing anything, and counts."""
    tokens = jnp.zeros((1, 1), int)
    shapes = jax.eval_shape(Transformer(config).init, jax.random.key(0), tokens, tokens)
    return {
        part: sum(leaf.size for leaf in jax.tree.leaves(tree))
        for part, tree in shapes["params"].items()
    }


@pytest.mark.parametrize("changes", [{}, {"d_k": 16}, BIG], ids=["base", "B", "big"])
def test_the_formula_counts_what_initialisation_makes(changes):
    config = dataclasses.replace(BASE, **changes)
    assert count_parameters(config)._asdict() == real_sizes(config)


@pytest.mark.parametrize("tying", ["all", "decoder", "none"])
def test_it_counts_every_variant(tying):
    config = dataclasses.replace(
        TINY, tying=tying, norm_position="pre", positions="learned", max_positions=31
    )
    count = count_parameters(config)
    assert count.total == sum(real_sizes(config).values())
    matrices = {"all": 1, "decoder": 2, "none": 3}[tying]
    assert count.embedding == (matrices * 29 + 2 * 31) * 14


@pytest.mark.parametrize("tying", ["decoder", "none"])
def test_it_counts_a_source_vocabulary_of_its_own(tying):
    config = dataclasses.replace(TINY, tying=tying, source_vocab_size=23)
    count = count_parameters(config)
    assert count.total == sum(real_sizes(config).values())
    assert count.embedding == (23 + {"decoder": 1, "none": 2}[tying] * 29) * 14


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        # queries and keys of 5, values of 7 in 3 heads, and 14 outputs; 2 layers have 6
        ({"attention_biases": True}, 6 * (3 * (5 + 5 + 7) + 14)),
        ({"output_bias": True}, 29),
        ({"output_bias": True, "tying": "none"}, 29 + 2 * 29 * 14),
        ({"positions": "learned", "max_positions": 11}, 2 * 11 * 14),
        (
            {"positions": "learned", "max_positions": 11, "first_position": 3},
            2 * 14 * 14,
        ),
        ({"num_decoder_layers": 2}, 0),
        ({"activation": "swish", "scale_embeddings": False, "start": "zero"}, 0),
        ({"position_rates": "tensor2tensor", "first_position": 2}, 0),
    ],
    ids=str,
)
def test_it_counts_the_keys_of_other_toolkits(changes, more):
    config = dataclasses.replace(TINY, **changes)
    count = count_parameters(config)
    assert count.total == sum(real_sizes(config).values())
    assert count.total - count_parameters(TINY).total == more


@pytest.mark.parametrize("layers", [1, 5])
def test_it_counts_a_decoder_of_another_depth(layers):
    config = dataclasses.replace(
        TINY, num_decoder_layers=layers, attention_biases=True, norm_position="pre"
    )
    assert count_parameters(config)._asdict() == real_sizes(config)


def test_the_parts_add_up():
    count = count_parameters(BASE)
    assert count.total == count.embedding + count.encoder + count.decoder == 63_045_632


def test_flops_of_the_papers_models_at_length_28():
    base = training_flops(BASE, source_length=28, target_length=28)
    assert base.total / 28 == pytest.approx(381.0e6, rel=1e-3)
    big = dataclasses.replace(BASE, **BIG)
    big_flops = training_flops(big, source_length=28, target_length=28)
    assert big_flops.total / 28 == pytest.approx(1290.5e6, rel=1e-3)


def test_a_layer_of_a_stack_adds_its_own_flops():
    def flops(encoder, decoder):
        config = dataclasses.replace(
            BASE, num_layers=encoder, num_decoder_layers=decoder
        )
        return training_flops(config, source_length=23, target_length=31).total

    equal = dataclasses.replace(BASE, num_layers=2)
    assert (
        flops(2, 2) == training_flops(equal, source_length=23, target_length=31).total
    )
    of_encoder, of_decoder = flops(3, 2) - flops(2, 2), flops(2, 3) - flops(2, 2)
    # 6 d_model d_ff x 2 + 6 x 4 d_model^2 of each token, and 12 d_model for each pair
    assert of_encoder == 23 * (12 * 512 * 2048 + 24 * 512**2) + 23**2 * 12 * 512
    # a second attention: two projections of a target token, two of a source token
    products = 31 * (12 * 512 * 2048 + 36 * 512**2) + 23 * 12 * 512**2
    assert of_decoder == products + (31 * 31 + 31 * 23) * 12 * 512


def test_where_the_flops_of_base_go():
    flops = training_flops(BASE, source_length=28, target_length=28)
    shares = [round(100 * part / flops.total, 1) for part in flops]
    assert shares == [39.6, 29.7, 0.8, 29.8, 0.0]


@pytest.mark.parametrize("remat", [False, True])
@pytest.mark.parametrize("norm_position", ["post", "pre"])
def test_it_counts_the_products_of_a_gradient(norm_position, remat):
    config = dataclasses.replace(
        TINY, dropout=0.1, norm_position=norm_position, remat=remat
    )
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
    assert counted == training_flops(config, source_length=17, target_length=23).total


@pytest.mark.parametrize("changes", [{}, {"num_decoder_layers": 3}], ids=str)
def test_the_compiler_counts_the_same_products_in_a_forward_pass(changes):
    config = dataclasses.replace(TINY, d_model=62, d_ff=127, d_k=41, d_v=43, **changes)
    params = jax.eval_shape(
        Transformer(config).init,
        jax.random.key(0),
        jnp.zeros((1, 1), int),
        jnp.zeros((1, 1), int),
    )
    source, target = jnp.ones((1, 17), int), jnp.ones((1, 23), int)
    compiled = (
        jax.jit(Transformer(config).apply).lower(params, source, target).compile()
    )
    ours = training_flops(config, source_length=17, target_length=23).total / 3
    # The compiler counts norms, softmax and residuals too, which matter at this size.
    assert ours < compiled.cost_analysis()["flops"] < 1.15 * ours
