import jax
import jax.numpy as jnp
import pytest
from flax import linen as nn

from t2t_jax.model.architectures import (
    count_parameters,
    make_module,
    make_step_model,
    training_flops,
)
from t2t_jax.model.config import RNNConfig, TransformerConfig
from t2t_jax.model.rnn.step_model import RNNStepModel
from t2t_jax.model.step_model import TransformerStepModel

SMALL = {"vocab_size": 29, "num_layers": 1, "d_model": 14, "dropout": 0.0}
TRANSFORMER = TransformerConfig(**SMALL, d_ff=19, num_heads=3, d_k=5, d_v=7)
RECURRENT = RNNConfig(**SMALL, d_hidden=22, d_attention=17)


@pytest.mark.parametrize(
    ("config", "step_model"),
    [(TRANSFORMER, TransformerStepModel), (RECURRENT, RNNStepModel)],
)
def test_both_take_the_same_arguments_and_have_a_step_model(config, step_model):
    module = make_module(config)
    source, target = jnp.ones((2, 5), int), jnp.ones((2, 7), int)
    params = module.init(jax.random.key(0), source, target)["params"]
    logits = module.apply(
        {"params": params},
        source,
        target,
        source_segments=source,
        target_segments=target,
        source_positions=source,
        target_positions=target,
        rows=jnp.arange(2),
        deterministic=True,
    )
    assert logits.shape == (2, 7, 29)
    assert isinstance(make_step_model(module, params), step_model)
    leaves = jax.tree.leaves(params)
    assert count_parameters(config).total == sum(leaf.size for leaf in leaves)
    one = training_flops(config, source_length=5, target_length=7).total
    assert 0 < one < training_flops(config, source_length=6, target_length=7).total


def test_a_module_of_another_kind_is_refused_by_name():
    with pytest.raises(TypeError, match="a Transformer or an RNN, not Dense"):
        make_step_model(nn.Dense(3), {})
