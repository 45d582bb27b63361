from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.decoding.ensemble import EnsembleStepModel
from t2t_jax.model.architectures import make_module, step_model
from tests.decoding.models import EOS, lattice, plain_search, recurrent
from tests.model.tiny import SOURCE as SOURCES
from tests.model.tiny import TARGET as TARGETS
from tests.model.tiny import TINY, tiny_apply, tiny_params

A, B = 4, 5
V = 11
SOURCE = jnp.asarray([[5, 6, 7, EOS], [8, EOS, 0, 0]])


def found(model, **options):
    return jax.jit(lambda: plain_search(model, SOURCE, beam_size=3, **options))()


def test_probabilities_are_averaged_and_not_their_logarithms():
    # The mean of 0.9 and 0.05 is 0.475; that of the logarithms would choose B.
    one = lattice({(): {A: 0.9, B: 0.1}}, V)
    other = lattice({(): {A: 0.05, B: 0.55, 6: 0.4}}, V)
    result = found(EnsembleStepModel((one, other)))
    assert np.asarray(result.tokens_BxWxT)[0, 0, :2].tolist() == [A, EOS]
    np.testing.assert_allclose(
        result.log_probabilities_BxW[0, 0], np.log(0.475), rtol=1e-5
    )


def test_every_member_starts_as_its_own_toolkit_does():
    configs = [replace(TINY, num_layers=1, start=start) for start in ("zero", "eos")]
    members = [
        step_model(make_module(config), tiny_params(config, seed=seed))
        for seed, config in enumerate(configs)
    ]
    ensemble = EnsembleStepModel(tuple(members))
    full = [
        jax.nn.softmax(tiny_apply(SOURCES, TARGETS, config=config, params=one.params))
        for config, one in zip(configs, members, strict=True)
    ]
    step = jax.jit(ensemble.step)
    memory = jax.jit(ensemble.encode)(SOURCES)
    cache = ensemble.init_cache(memory, 1, 7)
    for position in range(3):
        tokens = TARGETS[:, position, None]
        logs, cache = step(tokens, memory, cache, position)
        mean = sum(probabilities[:, position] for probabilities in full) / 2
        real = np.asarray(tokens[:, 0]) > 0
        # float32 sums in another order
        np.testing.assert_allclose(np.exp(logs[real, 0]), mean[real], rtol=1e-5)


def test_members_keep_their_own_state_and_their_order_is_nothing():
    one, other = recurrent(3, V), recurrent(8, V)
    result = found(EnsembleStepModel((one, other)))
    swapped = found(EnsembleStepModel((other, one)))
    np.testing.assert_array_equal(result.tokens_BxWxT, swapped.tokens_BxWxT)
    for model in (one, other):
        assert (np.asarray(found(model).tokens_BxWxT) != result.tokens_BxWxT).any()
