import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.errors import UserError
from t2t_jax.evaluation.attention_maps import attention_maps
from t2t_jax.model.architectures import AlignmentExtractor, make_module, step_model
from t2t_jax.model.config import RNNConfig, TransformerConfig
from t2t_jax.model.counting import training_flops
from t2t_jax.model.rnn.rnn import RNNStepModel
from t2t_jax.model.step_model import TransformerStepModel
from tests.model.tiny import SOURCE, TARGET, TINY, tiny_params

SMALL = {"vocab_size": 29, "num_layers": 1, "d_model": 14, "dropout": 0.0}
TRANSFORMER = TransformerConfig(**SMALL, d_ff=19, num_heads=3, d_k=5, d_v=7)
RECURRENT = RNNConfig(**SMALL, d_hidden=22, d_attention=17)


@pytest.mark.parametrize(
    ("config", "kind"), [(TRANSFORMER, TransformerStepModel), (RECURRENT, RNNStepModel)]
)
def test_both_take_the_same_arguments_and_have_a_step_model(config, kind):
    module = make_module(config)
    source, target = jnp.ones((2, 5), int), jnp.ones((2, 7), int)
    more = {"source_segments": source, "source_positions": source}
    more |= {"target_segments": target, "target_positions": target}
    more["rows"] = jnp.arange(2)
    run = partial(module.init_with_output, deterministic=True)
    found, made = jax.eval_shape(run, jax.random.key(0), source, target, **more)
    assert found.shape == (2, 7, 29)
    assert isinstance(step_model(module, made["params"]), kind)
    one, other = (
        sum(training_flops(config, source_length=n, target_length=7).values())
        for n in (5, 6)
    )
    assert 0 < one < other


@pytest.mark.parametrize("layers", [1, 3])
def test_alignments_are_of_the_decoder_s_own_layers(layers):
    config = dataclasses.replace(TINY, num_layers=1, num_decoder_layers=layers)
    module, variables = make_module(config), {"params": tiny_params(config)}
    maps = attention_maps(
        module, variables["params"], np.asarray(SOURCE)[0], np.asarray(TARGET)[0]
    )
    for layer in (0, layers - 1, -1, -layers):
        found = AlignmentExtractor(module, layer)(variables, SOURCE[:1], TARGET[:1])
        # float32, compiled and not
        assert_allclose(found[0], maps["cross"][layer].mean(axis=0), atol=1e-6)
    for layer in (layers, -layers - 1):
        with pytest.raises(UserError, match=f"={layer} must be one of the {layers} l"):
            AlignmentExtractor(module, layer)
