"""The smallest task a Transformer can learn, and a tiny one to learn it."""

from functools import partial

import jax
import numpy as np

from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.transformer import Transformer
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.sharding.rules import make_global_batch
from t2t_jax.training.config import OptimizerConfig, TrainingConfig
from t2t_jax.training.loss import forward_loss
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.state import init_state, state_shardings
from t2t_jax.training.step import lower_step, make_train_step
from t2t_jax.types import Batch

V, LENGTH = 13, 11
BOS, EOS, FIRST_WORD = 1, 2, 4
KEY = jax.random.key(5)


def pair_of(words):
    """Makes one row of one pair whose target is its source."""
    words = list(words)
    n = len(words) + 1
    return {
        "source": [*words, EOS],
        "target_inputs": [BOS, *words],
        "target_outputs": [*words, EOS],
        "source_segments": [1] * n,
        "target_segments": [1] * n,
        "source_positions": list(range(n)),
        "target_positions": list(range(n)),
    }


def batch_of(pairs, length=LENGTH, rows=None):
    """Pads one pair a row to `length`, and adds empty rows up to `rows`."""
    rows = rows or len(pairs)
    batch = {name: np.zeros((rows, length), np.int32) for name in Batch._fields[:-1]}
    for row, pair in enumerate(pairs):
        for name, values in pair.items():
            batch[name][row, : len(values)] = values
    return Batch(**batch, rows=np.arange(rows, dtype=np.int32))


def sentences(seed, count, longest=LENGTH - 1):
    """Draws sentences of unequal lengths."""
    random = np.random.default_rng(seed)
    return [
        random.integers(FIRST_WORD, V, size=random.integers(1, longest + 1))
        for _ in range(count)
    ]


class Trainer:
    """A tiny model with its compiled step on so many devices.

    `training` is a TrainingConfig; keywords that are not named are keys of an
    OptimizerConfig.
    """

    def __init__(
        self,
        devices,
        *,
        rows=16,
        dropout=0.3,
        peak=0.01,
        d_model=8,
        d_ff=None,
        training=None,
        **optimizer,
    ):
        config = TransformerConfig(
            vocab_size=V,
            num_layers=1,
            d_model=d_model,
            d_ff=d_ff or 2 * d_model + 1,
            num_heads=2,
            d_k=d_model // 2,
            d_v=d_model // 2,
            dropout=dropout,
        )
        self.module = Transformer(config)
        training = training or TrainingConfig()
        optimizer = {"warmup_steps": 30, "peak_learning_rate": peak, **optimizer}
        optimizer = make_optimizer(
            OptimizerConfig(**optimizer), d_model=d_model, frozen=training.frozen
        )
        self.mesh = make_mesh(jax.devices()[:devices])
        ema = training.ema_decay > 0
        init = partial(init_state, self.module, optimizer, ema=ema)
        shapes = jax.eval_shape(init, KEY)
        places = state_shardings(shapes, self.mesh)
        self.state = jax.jit(init, out_shardings=places)(KEY)
        self.sums = jax.jit(partial(forward_loss, self.module, label_smoothing=0.1))
        step = make_train_step(
            training,
            module=self.module,
            optimizer=optimizer,
            mesh=self.mesh,
            shardings=places,
        )
        self.compiled = lower_step(step, shapes, batch_shape=(rows, LENGTH)).compile()

    def step(self, batch):
        batch = make_global_batch(batch, self.mesh)
        self.state, output = self.compiled(self.state, batch, KEY)
        return jax.device_get(output)
