"""Twenty steps on the phrasebook, word by word, in bfloat16 and in float32."""

import functools
import itertools

import jax
import numpy as np

from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.model.architectures import make_module
from t2t_jax.model.config import TransformerConfig
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.training.config import OptimizerConfig, TrainingConfig
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.state import init_state
from t2t_jax.training.step import train_step
from tests.training.copy_task import EOS, FIRST_WORD, KEY, batch_of, pair_of

STEPS, ROWS, LENGTH, V = 20, 16, 24, 1021


def batches():
    """Gives each word a number, and each step its own sentences."""
    ids = {}

    def words(line):
        return [
            ids.setdefault(word, FIRST_WORD + len(ids) % (V - FIRST_WORD))
            for word in line.split()
        ]

    pairs = iter(open_corpus(f"phrasebook:train:{STEPS * ROWS}"))
    for group in iter(lambda: list(itertools.islice(pairs, ROWS)), []):
        sides = [(words(source), words(target)) for source, target in group]
        yield batch_of(
            [
                pair_of(target[: LENGTH - 1])
                | {
                    "source": [*source[: LENGTH - 1], EOS],
                    "source_segments": [1] * min(len(source) + 1, LENGTH),
                    "source_positions": list(range(min(len(source) + 1, LENGTH))),
                }
                for source, target in sides
            ],
            length=LENGTH,
        )


def losses(compute_dtype):
    config = TransformerConfig(
        vocab_size=V,
        num_layers=1,
        d_model=32,
        d_ff=64,
        num_heads=2,
        d_k=16,
        d_v=16,
        compute_dtype=compute_dtype,
    )
    optimizer = make_optimizer(
        OptimizerConfig(warmup_steps=10, peak_learning_rate=1e-2), d_model=32
    )
    module = make_module(config)
    state = jax.jit(functools.partial(init_state, module, optimizer))(KEY)
    step = jax.jit(
        functools.partial(
            train_step,
            module=module,
            optimizer=optimizer,
            config=TrainingConfig(),
            mesh=make_mesh(jax.devices()[:1]),
        )
    )
    found = []
    for batch in batches():
        state, output = step(state, batch, KEY)
        found.append(float(output.sums.nll / output.sums.target_tokens))
    return np.array(found)


def test_bfloat16_learns_as_float32_does():
    high, low = losses("float32"), losses("bfloat16")
    assert len(high) == STEPS
    assert high[-1] < high[0] - 1
    assert not np.array_equal(high, low)
    np.testing.assert_allclose(low, high, rtol=0.01)
