import jax.numpy as jnp

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


def test_a_sentence_is_done_when_nothing_living_can_overtake():
    # After two tokens A eos has log .5 / (7/6)^.6 = -.632, and B C has log .45 = -.799.
    # At a limit of 3 B C could reach -.799 / (8/6)^.6 = -.672, at 4 -.626.
    model = lattice(
        {(): {A: 0.5, B: 0.45, UNK: 0.05}, (B,): {C: 1.0}, (B, C): {D: 1.0}}, V
    )
    source = jnp.asarray([[4, EOS, 0], [4, 5, EOS]])
    params = BeamParams(beam_size=2)
    search, memory = BeamSearch(model, params), model.encode(source)
    limits_B = per_sentence_limits(source, params, max_extra_tokens=2, max_length=12)
    sizes = {"max_length": 12, "cache_length": 12}
    state = init_state(search, memory, limits_B=limits_B, **sizes)
    for done in ([False, False], [False, False], [True, False]):
        assert is_done(search, state).tolist() == done
        state = beam_step(search, state, memory=memory)
    assert state.finished.tokens_BxWxT[0, 0, :2].tolist() == [A, EOS]
