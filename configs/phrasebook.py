"""The embedded experiment: English to German, on a corpus that the program brings.

Not in the paper: a small post-norm Transformer on the grammar of t2t_jax/data/grammar.

    python -m t2t_jax.main

Score: 98.0 on phrasebook:test:500 after 2.5 minutes of training on two CPU cores (AMD
EPYC, 2026-11-21; nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0).
"""

from t2t_jax.config import default


def get_config():
    """Returns the configuration."""
    config = default()
    config.steps = 500
    config.data.train = "phrasebook:train:150000"
    config.data.dev = "phrasebook:dev:500"
    config.data.tokens_per_batch = 4_096  # token slots a side
    config.data.row_length = 64  # slots
    config.data.max_length = 64  # subwords
    config.vocabulary.size = 1_000
    config.model.num_layers = 2
    config.model.d_model = 128
    config.model.d_ff = 512
    config.model.num_heads = 4
    config.model.d_k = config.model.d_v = 32
    config.model.dropout = 0.0  # hardly a sentence is seen twice
    config.optimizer.warmup_steps = 200  # steps
    config.optimizer.peak_learning_rate = 3e-3
    config.evaluation.every_steps = 250
    config.checkpoint.every_steps = 100
    config.checkpoint.every_minutes = 0.0
    config.logging.every_steps = 25
    return config
