import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.model.step_model import TransformerStepModel
from t2t_jax.model.transformer import Transformer
from tests.model.tiny import SOURCE, TARGET, TINY, tiny_apply, tiny_params

CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 sums in another order
MODEL = TransformerStepModel(Transformer(TINY), tiny_params())
ENCODE = jax.jit(TransformerStepModel.encode)
STEP = jax.jit(TransformerStepModel.step)


def run(model, tokens_BxWxT, *, parents=None, length=7):
    """Reads all tokens step by step, compiled with the model as an argument."""
    memory = ENCODE(model, SOURCE)
    cache = model.init_cache(memory, tokens_BxWxT.shape[1], 3)
    outputs = []
    for t in range(tokens_BxWxT.shape[2]):
        if t == 3:
            cache = model.grow(cache, length)
            if parents is not None:
                cache = model.reorder(cache, parents)
        logits, cache = STEP(model, tokens_BxWxT[:, :, t], memory, cache, jnp.int32(t))
        outputs.append(logits)
    return jnp.stack(outputs, axis=2)


def test_steps_equal_the_full_pass_while_the_cache_grows():
    logits = run(MODEL, TARGET[:, None], length=11)
    real = np.asarray(TARGET) > 0
    assert_allclose(logits[:, 0][real], tiny_apply(SOURCE, TARGET)[real], **CLOSE)


@pytest.mark.parametrize("beams", [2, 11])
def test_a_reordered_beam_goes_on_from_its_parent(beams):
    firsts = jax.random.randint(jax.random.key(0), (3, beams, 3), 3, 29)
    lasts = jax.random.randint(jax.random.key(1), (3, beams, 4), 3, 29)
    parents = jnp.array([[1, 0], [1, 1], [0, 0]])
    parents = jnp.pad(parents, ((0, 0), (0, beams - 2)), mode="edge")
    logits = run(MODEL, jnp.concatenate([firsts, lasts], -1), parents=parents)
    for beam in (0, 1):
        history = firsts[jnp.arange(3), parents[:, beam]]
        whole = jnp.concatenate([history, lasts[:, beam]], -1)
        assert_allclose(logits[:, beam, 3:], tiny_apply(SOURCE, whole)[:, 3:], **CLOSE)


def test_the_memory_is_per_sentence_and_never_tiled():
    memory = ENCODE(MODEL, SOURCE)
    assert {leaf.shape[0] for leaf in jax.tree.leaves(memory)} == {3}
    assert memory.layers[0].keys.shape == (3, 3, 5, 5)
    cache = MODEL.init_cache(memory, 2, 13)
    assert {leaf.shape[0] for leaf in jax.tree.leaves(cache)} == {3}


def test_its_leaves_are_the_parameters_and_one_compilation_serves_them_all():
    assert len(jax.tree.leaves(MODEL)) == len(jax.tree.leaves(tiny_params()))
    compilations = []

    @jax.jit
    def encode(model):
        compilations.append(1)
        return model.encode(SOURCE).layers[0].keys

    other = TransformerStepModel(Transformer(TINY), tiny_params(seed=1))
    assert not jnp.array_equal(encode(MODEL), encode(other))
    assert len(compilations) == 1
