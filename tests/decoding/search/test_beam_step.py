import jax.numpy as jnp
import numpy as np

from t2t_jax.decoding.search.beam_search import (
    beam_step,
    init_state,
    is_done,
)
from t2t_jax.decoding.search.beam_state import BeamSearch
from t2t_jax.decoding.search.length_penalty import per_sentence_limits
from t2t_jax.decoding.search.static_params import BeamParams
from tests.decoding.models import EOS, UNK, lattice

A, B, C, D = 4, 5, 6, 7
V = 11


def start(model, source, params, *, extra=5, room=12):
    search, memory = BeamSearch(model, params), model.encode(source)
    limits_B = per_sentence_limits(
        source, params, max_extra_tokens=extra, max_length=room
    )
    sizes = {"max_length": room, "cache_length": room}
    return search, memory, init_state(search, memory, limits_B=limits_B, **sizes)


def test_one_step_drawn():
    tree = {(): {A: 0.5, B: 0.2, C: 0.1, EOS: 0.15, UNK: 0.05}}
    params = BeamParams(beam_size=2, length_penalty=1.0)
    search, memory, state = start(lattice(tree, V), jnp.asarray([[4, EOS]]), params)
    state = beam_step(search, state, memory=memory)
    # The best 4: A, B, eos, C. Eos is finished, A and B are the best others.
    assert state.living.tokens_BxWxT[0, :, 0].tolist() == [A, B]
    assert state.last_tokens_BxW.tolist() == [[A, B]]
    living = np.log([[0.5, 0.2]])
    np.testing.assert_allclose(state.living.log_probabilities_BxW, living, rtol=1e-6)
    assert state.finished.tokens_BxWxT[0, 0, :2].tolist() == [EOS, 0]
    finished = [[np.log(0.15), -np.inf]]
    np.testing.assert_allclose(state.finished.scores_BxW, finished, rtol=1e-6)


def test_a_sentence_is_done_when_nothing_living_can_overtake():
    # After two tokens A eos has log .5 / (7/6)^.6 = -.632, and B C has log .45 = -.799.
    # At a limit of 3 B C could reach -.799 / (8/6)^.6 = -.672, at 4 -.626.
    model = lattice(
        {(): {A: 0.5, B: 0.45, UNK: 0.05}, (B,): {C: 1.0}, (B, C): {D: 1.0}}, V
    )
    source = jnp.asarray([[4, EOS, 0], [4, 5, EOS]])
    search, memory, state = start(model, source, BeamParams(beam_size=2), extra=2)
    for done in ([False, False], [False, False], [True, False]):
        assert is_done(search, state).tolist() == done
        state = beam_step(search, state, memory=memory)
    assert state.finished.tokens_BxWxT[0, 0, :2].tolist() == [A, EOS]
