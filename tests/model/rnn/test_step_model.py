import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.model.rnn.rnn import RNN
from t2t_jax.model.rnn.step_model import RNNStepModel
from tests.decoding.models import search
from tests.model.tiny import SOURCE, TARGET
from tests.model.tiny_rnn import TINY_RNN, rnn_apply, rnn_params
from tests.reference.greedy import greedy_search

CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 sums in another order
MODEL = RNNStepModel(RNN(TINY_RNN), rnn_params())
ENCODE = jax.jit(RNNStepModel.encode)
STEP = jax.jit(RNNStepModel.step)


def run(model, tokens_BxWxT, *, parents=None):
    """Reads all tokens step by step, compiled with the model as an argument."""
    memory = ENCODE(model, SOURCE)
    cache = model.init_cache(memory, tokens_BxWxT.shape[1], 3)
    outputs = []
    for t in range(tokens_BxWxT.shape[2]):
        if t == 3:
            cache = model.grow(cache, 7)
            if parents is not None:
                cache = model.reorder(cache, parents)
        logits, cache = STEP(model, tokens_BxWxT[:, :, t], memory, cache, jnp.int32(t))
        outputs.append(logits)
    return jnp.stack(outputs, axis=2)


def test_steps_equal_the_full_pass():
    logits = run(MODEL, TARGET[:, None])
    real = np.asarray(TARGET) > 0
    assert_allclose(logits[:, 0][real], rnn_apply(SOURCE, TARGET)[real], **CLOSE)


def test_a_reordered_beam_goes_on_from_its_parent():
    firsts = jax.random.randint(jax.random.key(0), (3, 2, 3), 3, 29)
    lasts = jax.random.randint(jax.random.key(1), (3, 2, 4), 3, 29)
    parents = jnp.array([[1, 0], [1, 1], [0, 0]])
    logits = run(MODEL, jnp.concatenate([firsts, lasts], -1), parents=parents)
    for beam in (0, 1):
        history = firsts[jnp.arange(3), parents[:, beam]]
        whole = jnp.concatenate([history, lasts[:, beam]], -1)
        assert_allclose(logits[:, beam, 3:], rnn_apply(SOURCE, whole)[:, 3:], **CLOSE)


def test_one_beam_may_become_several():
    cache = MODEL.init_cache(ENCODE(MODEL, SOURCE), 1, 7)
    spread = MODEL.reorder(cache, jnp.zeros((3, 5), int))
    assert {leaf.shape for leaf in jax.tree.leaves(spread)} == {(3, 5, 22)}


def test_the_memory_is_per_sentence_and_never_tiled():
    memory = ENCODE(MODEL, SOURCE)
    assert memory.keys.shape == (3, 5, 13)
    assert memory.values.shape == (3, 5, 22)
    cache = MODEL.init_cache(memory, 2, 13)
    assert [leaf.shape for leaf in jax.tree.leaves(cache)] == [(3, 2, 22)] * 4


def test_growing_changes_nothing():
    cache = MODEL.init_cache(ENCODE(MODEL, SOURCE), 2, 3)
    assert MODEL.grow(cache, 11) is cache


def test_beam_search_runs_on_it_and_a_beam_of_one_is_greedy():
    rules = {"max_extra_tokens": 5}
    one = search(MODEL, SOURCE, beam_size=1, length_penalty=0.0, **rules)
    alone = jax.jit(greedy_search, static_argnames="max_extra_tokens")(
        MODEL, SOURCE, **rules
    )
    assert_array_equal(one.tokens_BxWxT[:, 0], alone.tokens_BxT)
    assert_allclose(one.log_probabilities_BxW[:, 0], alone.log_probabilities_B, **CLOSE)


def test_a_beams_score_is_what_the_full_pass_gives_its_output():
    found = search(MODEL, SOURCE, max_extra_tokens=5)
    outputs = found.tokens_BxWxT[:, 0]
    inputs = jnp.pad(outputs, ((0, 0), (1, 0)), constant_values=1)[:, :-1]
    log_probabilities = jax.nn.log_softmax(rnn_apply(SOURCE, inputs))
    said = jnp.take_along_axis(log_probabilities, outputs[..., None], -1)[..., 0]
    total = (said * (outputs > 0)).sum(-1)
    assert_allclose(found.log_probabilities_BxW[:, 0], total, rtol=1e-4)


def test_its_leaves_are_the_parameters_and_one_compilation_serves_them_all():
    assert len(jax.tree.leaves(MODEL)) == len(jax.tree.leaves(rnn_params()))
    compilations = []

    @jax.jit
    def encode(model):
        compilations.append(1)
        return model.encode(SOURCE).keys

    other = RNNStepModel(RNN(TINY_RNN), rnn_params(seed=1))
    assert not jnp.array_equal(encode(MODEL), encode(other))
    assert len(compilations) == 1
