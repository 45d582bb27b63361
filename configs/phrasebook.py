"""The default experiment: English to German, on the embedded phrasebook corpus.

Not in the paper: a small post-norm Transformer; tools/phrasebook generates the
corpus.

    python -m t2t_jax.main

Score: 97.7 on phrasebook:test:500 after 4.6 minutes, vocabulary and compilation
included, and all of data/corpora/phrasebook_examples.tsv right (two cores of an AMD
EPYC, Zen 3); 96.3 after 3.4 minutes on an EPYC with AVX512_BF16, also in float32
(2026-11-26; nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0).
"""

from t2t_jax.config import default


def get_config():
    """Returns the configuration."""
    config = default()
    config.steps = 1_500
    config.data.train = "phrasebook:train:120000"
    config.data.dev = "phrasebook:dev:500"
    config.data.tokens_per_batch = 1_536  # token slots a side
    config.data.row_length = 32  # slots
    config.data.max_length = 32  # subwords; a few of 100,000 pairs are longer
    config.vocabulary.size = 2_000
    config.model.num_layers = 2
    config.model.d_model = 128
    config.model.d_ff = 512
    config.model.num_heads = 4
    config.model.d_k = config.model.d_v = 32
    config.model.dropout = 0.0  # no sentence is seen more than twice
    config.optimizer.warmup_steps = 150  # steps
    config.optimizer.peak_learning_rate = 4e-3
    config.training.ema_decay = 0.98  # as the paper averages its last checkpoints
    config.evaluation.every_steps = 750
    config.checkpoint.every_steps = 250
    config.checkpoint.every_minutes = 0.0
    config.logging.every_steps = 50
    return config
