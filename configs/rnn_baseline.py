"""The default experiment with the recurrent baseline instead of the Transformer.

The paper's Table 1, row "Recurrent": a bidirectional LSTM encoder-decoder with additive
attention. All settings but the model's are those of phrasebook.py; it has as many
parameters: 1.17 million, the Transformer 1.18. benchmarks/README.md has the speed of
both, and their BLEU after equal time.

    python -m t2t_jax.main --config=rnn_baseline

Score: 95.7 on phrasebook:test:500, where the Transformer has 97.7 (docs/results.md). On
the corpus's first version, after 2 minutes of training (233 steps of 4,096 slots a
side), 54.9 and 84.7 (two cores, AMD EPYC, 2026-11-21; benchmarks/README.md).
"""

from t2t_jax.config import default


def get_config():
    """Returns the configuration."""
    config = default()
    config.architecture = "rnn"
    config.steps = 1_500
    config.data.train = "phrasebook:train:120000"
    config.data.dev = "phrasebook:dev:500"
    config.data.tokens_per_batch = 1_536  # token slots a side
    config.data.row_length = 32  # slots
    config.data.max_length = 32  # subwords
    config.vocabulary.size = 2_000
    config.rnn.num_layers = 2
    config.rnn.d_model = 128
    config.rnn.d_hidden = 164
    config.rnn.d_attention = 128
    config.rnn.dropout = 0.0  # no sentence is seen more than twice
    config.optimizer.warmup_steps = 150  # steps
    config.optimizer.peak_learning_rate = 4e-3
    config.evaluation.every_steps = 750
    config.checkpoint.every_steps = 250
    config.checkpoint.every_minutes = 0.0
    config.logging.every_steps = 50
    return config
