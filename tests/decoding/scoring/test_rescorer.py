import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.decoding.ensemble import EnsembleStepModel
from t2t_jax.decoding.scoring import teacher_forcing
from t2t_jax.decoding.scoring.teacher_forcing import Rescorer
from t2t_jax.errors import UserError
from t2t_jax.evaluation.attention_maps import attention_maps
from t2t_jax.model.architectures import AlignmentExtractor, make_module, step_model
from t2t_jax.model.config import RNNConfig, TransformerConfig
from tests.decoding.models import plain_search

V = 23
CONFIG = TransformerConfig(
    vocab_size=V, num_layers=2, d_model=6, d_ff=10, num_heads=3, d_k=2, d_v=2
)
SOURCE = np.array([[5, 6, 7, 9, 2], [8, 2, 0, 0, 0], [11, 13, 2, 0, 0]], np.int32)


@functools.cache
def made(config=CONFIG, seed=0):
    module = make_module(config, devices=jax.local_devices())
    token = jnp.ones((1, 1), jnp.int32)
    return module, jax.jit(module.init)(jax.random.key(seed), token, token)


def rescorer(*models, layer=None, **changes):
    modules, variables = zip(*models, strict=True)
    if layer is not None:
        changes["attends"] = tuple(AlignmentExtractor(one, layer) for one in modules)
    applies = tuple(module.apply for module in modules)
    return Rescorer(applies, variables, vocab_size=V, **changes)


def searched(*models):
    steps = tuple(step_model(m, v["params"]) for m, v in models)
    model = EnsembleStepModel(steps) if len(steps) > 1 else steps[0]
    search = jax.jit(lambda: plain_search(model, SOURCE, max_extra_tokens=9))
    result = jax.tree.map(np.asarray, search())
    return result.tokens_BxWxT[:, 0], result.log_probabilities_BxW[:, 0]


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_the_tokens_scores_are_those_that_the_search_has_added_up(seeds):
    models = [made(seed=seed) for seed in seeds]
    outputs, log_probabilities = searched(*models)
    found = rescorer(*models).rescore(SOURCE, outputs)
    sums = found.log_probabilities_BxT.sum(axis=1)
    np.testing.assert_allclose(sums, log_probabilities, rtol=1e-4)
    assert found.attention_BxTxS is None


def test_lengths_share_a_few_widths():
    outputs, asked = np.zeros((3, 70), np.int32), rescorer(made())
    for length, width in ((2, 16), (17, 32), (33, 64), (50, 64), (65, 70)):
        outputs[1, :length] = 5
        found = asked.rescore(SOURCE, outputs)
        assert found.log_probabilities_BxT.shape == (3, width)


def test_outputs_that_memory_bounds_are_examined_in_parts(monkeypatch):
    model = made()
    outputs, _ = searched(model)
    whole = rescorer(model, layer=-1).rescore(SOURCE, outputs)
    monkeypatch.setattr(teacher_forcing, "_MAX_BYTES", 1)
    parts = rescorer(model, layer=-1).rescore(SOURCE, outputs)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("layer", [0, 1, -1])
def test_attention_is_the_mean_of_the_heads_of_the_chosen_layer(layer):
    module, variables = made()
    outputs = np.array([[5, 9, 2, 0], [7, 7, 7, 2], [4, 2, 0, 0]], np.int32)
    asked = rescorer((module, variables), layer=layer, token_scores=False)
    found = asked.rescore(SOURCE, outputs).attention_BxTxS
    inputs = np.array([1, 7, 7, 7])
    maps = attention_maps(module, variables["params"], SOURCE[1, :2], inputs)
    expected = maps["cross"][layer].mean(axis=0)
    np.testing.assert_allclose(found[1, :4, :2], expected, atol=1e-6)
    assert (found[1, :, 2:] == 0).all()


def test_a_recurrent_model_has_one_layer_that_looks():
    config = RNNConfig(vocab_size=V, num_layers=1, d_model=6, d_hidden=4)
    model = made(config)
    outputs = np.array([[5, 9, 2], [7, 2, 0], [4, 2, 0]], np.int32)
    asked = rescorer(model, layer=-1, token_scores=False)
    found = asked.rescore(SOURCE, outputs).attention_BxTxS
    np.testing.assert_allclose(found[1, :2].sum(axis=-1), 1, rtol=1e-5)
    assert (found[1, :2, 2:] == 0).all()
    with pytest.raises(UserError, match="attention_layer=1 must be one of the 1"):
        AlignmentExtractor(model[0], 1)
