import dataclasses
import functools

import jax
import jax.numpy as jnp
import pytest
from flax import linen as nn

from t2t_jax.model.config import RNNConfig
from t2t_jax.model.rnn.counting import count_rnn_parameters, rnn_training_flops
from t2t_jax.model.rnn.rnn import RNN
from tests.model.tiny_rnn import TINY_RNN

TOKEN = jnp.ones((1, 1), int)


def shapes_of(config):
    return jax.eval_shape(RNN(config).init, jax.random.key(0), TOKEN, TOKEN)


@pytest.mark.parametrize(
    "config",
    [
        RNNConfig(),
        TINY_RNN,
        dataclasses.replace(TINY_RNN, num_layers=1),
        dataclasses.replace(TINY_RNN, num_layers=3, tying="decoder"),
        dataclasses.replace(TINY_RNN, tying="none", source_vocab_size=19),
    ],
    ids=["default", "tiny", "one layer", "decoder", "none"],
)
def test_the_formula_counts_what_initialisation_makes(config):
    made = {"embedding": 0, "encoder": 0, "decoder": 0}
    for part, tree in shapes_of(config)["params"].items():
        part = part if part in made else "embedding"
        made[part] += sum(leaf.size for leaf in jax.tree.leaves(tree))
    assert count_rnn_parameters(config)._asdict() == made


def test_the_compiler_counts_the_same_products_in_a_forward_pass(monkeypatch):
    # The compiler counts the body of a loop once, so there must be no loop.
    monkeypatch.setattr(nn, "scan", functools.partial(nn.scan, unroll=3))
    config = dataclasses.replace(TINY_RNN, num_layers=1, d_model=62, d_hidden=106)
    source, target = jnp.ones((1, 2), int), jnp.ones((1, 3), int)
    lowered = jax.jit(RNN(config).apply).lower(shapes_of(config), source, target)
    count = rnn_training_flops(config, source_length=2, target_length=3)
    # It counts the additions of gates, biases and attention too.
    assert 1 < lowered.compile().cost_analysis()["flops"] / (count.total / 3) < 1.05


def test_the_parts_of_the_operations_grow_as_they_should():
    config = TINY_RNN
    short, long = (
        rnn_training_flops(config, source_length=n, target_length=n) for n in (11, 22)
    )
    assert long.lstms == 2 * short.lstms
    assert long.logits == 2 * short.logits
    assert long.readout == 2 * short.readout
    assert 2 * short.attention < long.attention < 4 * short.attention
    assert long.total == sum(long)


def test_the_attention_compares_projects_and_sums_by_hand():
    config = dataclasses.replace(TINY_RNN, d_hidden=22, d_attention=17)
    count = rnn_training_flops(config, source_length=5, target_length=7)
    # Keys of 5 and queries of 7 positions; for each of the 35 pairs a product with v
    # and a weighted sum of what is looked at; forward and twice backward, 2 each.
    products = 5 * 22 * 17 + 7 * 22 * 17 + 35 * (17 + 22)
    assert count.attention == 6 * products
