"""The smallest task a Transformer can learn, and a tiny one to learn it."""

import dataclasses
from functools import cache, cached_property, partial

import jax
import numpy as np

from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.devices.sharding.rules import make_global_batch
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.transformer import Transformer
from t2t_jax.training.config import OptimizerConfig, TrainingConfig
from t2t_jax.training.loss import forward_loss
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.state import init_state, state_shapes, state_shardings
from t2t_jax.training.step import lower_step, make_train_step
from t2t_jax.types import Batch

V, LENGTH, ROWS = 13, 11, 16
BOS, EOS, FIRST_WORD = 1, 2, 4
KEY = jax.random.key(5)
CONFIG = TransformerConfig(
    vocab_size=V,
    num_layers=1,
    d_model=16,
    d_ff=24,
    num_heads=2,
    d_k=4,
    d_v=8,
    dropout=0.3,
)
LEARNER = {"d_model": 32, "d_ff": 46, "d_k": 16, "d_v": 16, "dropout": 0.0}
"""Sizes with which the task is learned in some hundred steps of 32 rows."""

require_same = partial(jax.tree.map, np.testing.assert_array_equal)
made_optimizer, shapes_of = cache(make_optimizer), cache(state_shapes)


@cache
def first_state(module, optimizer, *, ema):
    """Draws it once, on one device: tests/training/test_state.py draws on others."""
    mesh = make_mesh(jax.devices()[:1])
    return jax.device_get(init_state(module, optimizer, KEY, mesh=mesh, ema=ema))


def pair_of(words):
    """Makes one row of one pair whose target is its source."""
    words = list(words)
    segments, positions = [1] * (len(words) + 1), list(range(len(words) + 1))
    return {
        "source": [*words, EOS],
        "target_inputs": [BOS, *words],
        "target_outputs": [*words, EOS],
        "source_segments": segments,
        "target_segments": segments,
        "source_positions": positions,
        "target_positions": positions,
    }


def batch_of(pairs, length=LENGTH, rows=None):
    """Pads one pair a row to `length`, and adds empty rows up to `rows`."""
    rows = rows or len(pairs)
    batch = {name: np.zeros((rows, length), np.int32) for name in Batch._fields[:-1]}
    for row, pair in enumerate(pairs):
        for name, values in pair.items():
            batch[name][row, : len(values)] = values
    return Batch(**batch, rows=np.arange(rows, dtype=np.int32))


def packed(pairs, length):
    """Puts all the pairs into one row, one after the other."""
    row = {name: [] for name in Batch._fields[:-1]}
    for number, pair in enumerate(pairs, start=1):
        for name, values in pair.items():
            row[name] += [number] * len(values) if "segments" in name else values
    return batch_of([row], length=length)


def sentences(seed, count, longest=LENGTH - 1):
    """Draws sentences of unequal lengths."""
    random = np.random.default_rng(seed)
    return [
        random.integers(FIRST_WORD, V, size=random.integers(1, longest + 1))
        for _ in range(count)
    ]


def drawn_pairs(seed, count, longest=LENGTH - 1):
    return [pair_of(words) for words in sentences(seed, count, longest)]


def batches(count, *, rows=ROWS):
    """Draws batches, of which each has three empty rows."""
    return [batch_of(drawn_pairs(n, rows - 3), rows=rows) for n in range(count)]


class Trainer:
    """A tiny model with its step on so many devices.

    `model` and `mesh` change `CONFIG` and a MeshConfig; keywords that are not named are
    keys of an OptimizerConfig.
    """

    def __init__(
        self,
        devices=1,
        *,
        rows=ROWS,
        module=None,
        model=None,
        training=None,
        loss=None,
        mesh=None,
        shard_optimizer=False,
        **optimizer,
    ):
        self.module = module or Transformer(dataclasses.replace(CONFIG, **model or {}))
        training = training or TrainingConfig()
        optimizer = {"warmup_steps": 30, "peak_learning_rate": 0.01, **optimizer}
        optimizer = made_optimizer(
            OptimizerConfig(**optimizer),
            d_model=self.module.config.d_model,
            frozen=training.frozen,
        )
        self.mesh = make_mesh(jax.devices()[:devices], **(mesh or {}))
        model, ema = (self.module, optimizer), training.ema_decay > 0
        shapes = self.shapes = shapes_of(*model, ema=ema)
        places = state_shardings(shapes, self.mesh, shard_optimizer=shard_optimizer)
        self.place = lambda: jax.device_put(first_state(*model, ema=ema), places)
        self.sums = jax.jit(partial(forward_loss, self.module, label_smoothing=0.1))
        step = make_train_step(
            *model, mesh=self.mesh, config=training, loss=loss, shardings=places
        )
        self.lowered = lower_step(step, shapes, batch_shape=(rows, LENGTH))

    @cached_property
    def compiled(self):
        return self.lowered.compile()

    @cached_property
    def state(self):
        """The first state; to be copied where it is donated."""
        return self.place()

    def copied(self, state):
        """Copies a state, since a step donates it."""
        return jax.tree.map(
            lambda x, at: jax.device_put(x, at.sharding).copy(), state, self.state
        )

    def step(self, state, batch, key=KEY):
        """Takes a step from a copy of a state: the state after it, and its output."""
        batch = make_global_batch(batch, self.mesh)
        state, output = self.compiled(self.copied(state), batch, key)
        return state, jax.device_get(output)

    def steps(self, batches, state=None):
        """Takes steps: the last state, and which of the updates were applied."""
        state, applied = self.copied(self.state if state is None else state), []
        for batch in batches:
            batch = make_global_batch(batch, self.mesh)
            state, output = self.compiled(state, batch, KEY)
            applied.append(output.applied)
        return jax.device_get(state), [bool(one) for one in applied]
