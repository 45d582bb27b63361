import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.decoding.engine.chunked_decode import chunked_search
from t2t_jax.decoding.ensemble import EnsembleStepModel
from t2t_jax.decoding.search.beam_search import beam_search
from t2t_jax.decoding.search.sampling import sample
from t2t_jax.decoding.search.static_params import BeamParams
from t2t_jax.errors import UserError
from t2t_jax.model.rnn.rnn import RNN, RNNStepModel
from t2t_jax.model.step_model import TransformerStepModel
from t2t_jax.model.transformer import Transformer
from tests.decoding.models import (
    BOS,
    EOS,
    PAD,
    best,
    lattice,
    plain_search,
    recurrent,
    search,
)
from tests.model.tiny import TINY, TINY_RNN

A, B, C = 4, 5, 6
V = 11
SOURCE = jnp.asarray([[5, 6, 7, EOS], [8, EOS, PAD, PAD]])
TREE = lattice(
    {
        (): {A: 0.7, B: 0.3},
        (A,): {EOS: 1.0},
        (B,): {A: 0.6, C: 0.4},
        (B, C): {A: 0.9, EOS: 0.1},
    },
    V,
)


def test_a_forced_prefix_is_said_and_its_probability_counted():
    assert best(plain_search(TREE, SOURCE[:1])) == (A, EOS)
    result = plain_search(TREE, SOURCE[:1], prefixes_BxP=jnp.asarray([[B, C]]))
    assert best(result) == (B, C, A, EOS)
    expected = np.log([0.3 * 0.4 * 0.9])
    np.testing.assert_allclose(result.log_probabilities_BxW[0], expected, rtol=1e-5)


@pytest.mark.parametrize("least", [0, 1, 2, 5])
def test_no_output_ends_before_its_least_length(least):
    model, rules = recurrent(2, V, eos_bias=6.0), {"beam_size": 2, "n_best": 2}
    result = plain_search(model, SOURCE, min_tokens=least, **rules)
    assert np.asarray(result.lengths_BxW).min() == least + 1
    assert np.asarray(result.finished_BxW).all()
    # The limit is stronger.
    short = plain_search(model, SOURCE, min_tokens=9, max_length=3, **rules)
    assert np.asarray(short.lengths_BxW)[:, 0].tolist() == [3, 3]
    assert not np.asarray(short.finished_BxW).any()


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_prefix_longer_than_the_limit_of_its_sentence_raises_it(is_chunked):
    model = recurrent(1, V, eos_bias=-9.0)
    prefixes = np.full((2, 40), 7, np.int32)
    prefixes[1, 3:] = PAD
    given = {"max_extra_tokens": 35, "prefixes_BxP": prefixes}
    if is_chunked:
        result = chunked_search(model, SOURCE, search_params=BeamParams(), **given)
    else:
        result = search(model, SOURCE, **given)
    # The limits, without the eos of the source, are 38 and 36.
    assert np.asarray(result.lengths_BxW)[:, 0].tolist() == [41, 36]
    assert (np.asarray(result.tokens_BxWxT)[0, 0, :40] == 7).all()


@pytest.mark.parametrize(
    "prefix",
    [
        *(np.full((3, 2), 5), np.full((2, 2), 5.0), np.full((2, 9), 5)),
        *(np.asarray([one, [5, PAD]]) for one in ([5, EOS], [BOS, 5], [PAD, 5])),
    ],
)
def test_a_prefix_that_cannot_be_said_is_refused(prefix):
    rule = r"\[B=2, P\] whole numbers with 0 < P < 9, .* pad only after the last"
    with pytest.raises(UserError, match=rule):
        plain_search(recurrent(0, V), SOURCE, max_length=9, prefixes_BxP=prefix)


SEARCHES = {
    "beam_search": plain_search,
    "sample": lambda model, source: sample(model, source, jax.random.key(0)),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_an_empty_batch_has_empty_outputs(name):
    model = TransformerStepModel(Transformer(TINY), params={})
    result = SEARCHES[name](model, np.zeros((0, 3), np.int32))
    full = jax.eval_shape(SEARCHES[name], TREE, SOURCE[:, :3])
    for none, some in zip(result, full, strict=True):
        assert (none.shape, none.dtype) == ((0, *some.shape[1:]), some.dtype)


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize(
    "model",
    [
        TransformerStepModel(Transformer(TINY), params={}),
        RNNStepModel(RNN(TINY_RNN), params={}),
        EnsembleStepModel((TREE, TransformerStepModel(Transformer(TINY), params={}))),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize(
    ("tokens", "said"), [([5, 29], "5 to 29"), ([-1, 2], "-1 to 2")]
)
def test_tokens_that_the_model_does_not_have_are_refused(name, model, tokens, said):
    with pytest.raises(UserError, match=rf"from {said} must lie in \[0, 29\)"):
        SEARCHES[name](model, np.array([tokens]))


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: plain_search(Transformer(TINY), SOURCE), TypeError, "^beam_search ta"),
        (lambda: sample(Transformer(TINY), SOURCE, None), TypeError, "^sample takes a"),
        (lambda: plain_search(TREE, ["ab"]), TypeError, "not text. Pass model.encode"),
        (lambda: beam_search(TREE, SOURCE, params={}), TypeError, "not a dict"),
        (lambda: sample(TREE, SOURCE, None), TypeError, "takes a key, not None"),
        (lambda: plain_search(TREE, np.ones((2, 3))), UserError, r"\[B, S\] whole num"),
        (lambda: plain_search(TREE, np.ones(3, int)), UserError, r"\[B, S\] whole num"),
        (lambda: plain_search(TREE, SOURCE, max_extra_tokens=-1), UserError, "=-1 mus"),
        (lambda: plain_search(TREE, SOURCE, max_length=0), UserError, "max_length=0 m"),
    ],
)
def test_other_arguments_are_named(call, error, named):
    with pytest.raises(error, match=named):
        call()
