from functools import partial

import jax
import numpy as np

from t2t_jax.model.config import RNNConfig
from t2t_jax.model.rnn.rnn import RNN
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.training.config import OptimizerConfig, TrainingConfig
from t2t_jax.training.loss import forward_loss
from t2t_jax.training.metrics import summarise
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.state import init_state
from t2t_jax.training.step import train_step
from tests.training.copy_task import EOS, KEY, V, batch_of, pair_of, sentences

MODULE = RNN(
    RNNConfig(vocab_size=V, num_layers=1, d_model=32, d_hidden=48, d_attention=32)
)


def reversed_pairs(seed, count):
    """Draws sentences to be said from their end: the source must be looked at."""
    return batch_of(
        [
            pair_of(words) | {"source": [*words[::-1], EOS]}
            for words in sentences(seed, count)
        ]
    )


def test_a_reversal_is_learned_to_99_percent():
    optimizer = make_optimizer(
        OptimizerConfig(warmup_steps=50, peak_learning_rate=1e-2), d_model=32
    )
    state = jax.jit(partial(init_state, MODULE, optimizer))(KEY)
    step = jax.jit(
        partial(
            train_step,
            module=MODULE,
            optimizer=optimizer,
            config=TrainingConfig(),
            mesh=make_mesh(jax.devices()[:1]),
        )
    )
    for number in range(500):
        state, _ = step(state, reversed_pairs(100 + number, 32), KEY)
    figures = summarise(
        jax.device_get(
            jax.jit(partial(forward_loss, MODULE, label_smoothing=0.1))(
                state.params, reversed_pairs(1, 64)
            )
        )
    )
    assert np.isfinite(figures["loss"])
    assert figures["accuracy"] > 0.99, figures
