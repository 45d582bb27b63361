"""Constituency parsing on GUM: 10,224 English sentences, a model for two cores (§6.3).

Not in the paper. The treebank is https://github.com/amir-zeldes/gum, its constituents
automatic parses of gold tags ("silver"): put train, dev and test as .ptb.gz into
data/gum. `rnn` is the recurrent baseline with as many parameters, 4.1 million.

    python -m t2t_jax.main --config=parsing_gum

Score: F1 on test 76.5, with `decoding.constraint=tree` too, 38 minutes on one core; rnn
74.2, 76.7 and 40; right-branching trees 17.1. AMD EPYC, JAX 0.10.2, 2026-11-23.
"""

import os

from t2t_jax.config import choose_row, default

DATA = os.environ.get("T2T_JAX_TEST_DATA", "data") + "/gum"
ROWS = {
    "transformer": {
        "data.packed_row_lengths": 3,  # of 256, 128 and 64 slots
        "vocabulary.size": 384,
        "optimizer.name": "muon",
        "optimizer.warmup_steps": 300,
        "optimizer.peak_learning_rate": 6e-3,
        "optimizer.adam_learning_rate": 3e-3,
    },
    "rnn": {"architecture": "rnn", "steps": 4_000},
}
SYMBOLS = {"transformer": "numbers", "rnn": "tags"}  # of words: what suits each


def get_config(row="transformer"):
    """Returns the configuration of one row."""
    config = default()
    config.steps = 3_000
    config.data.train = f"trees:{DATA}/train.ptb.gz#{SYMBOLS.get(row)}"
    config.data.dev = f"trees:{DATA}/dev.ptb.gz#{SYMBOLS.get(row)}[:300]"
    config.data.tokens_per_batch = 2_048  # token slots a side
    config.vocabulary.size = 128
    config.vocabulary.unit = config.vocabulary.source_unit = "words"
    config.vocabulary.source_size = 5_000
    config.model.num_layers = 3
    config.model.d_model = 192
    config.model.d_ff = 768
    config.model.num_heads = 6
    config.model.d_k = config.model.d_v = 32
    config.model.dropout, config.rnn.dropout = 0.1, 0.2
    config.model.norm_position = "pre"
    config.model.tying = config.rnn.tying = "decoder"
    config.rnn.d_model = config.rnn.d_attention = 192
    config.rnn.d_hidden = 312
    config.optimizer.warmup_steps = 200  # steps
    config.optimizer.peak_learning_rate = 4e-3
    config.evaluation.every_steps = 500
    config.checkpoint.every_steps = 250
    config.training.ema_decay = 0.999
    config.decoding.max_source_length = 256  # words
    config.decoding.max_extra_tokens = 300
    config.update_from_flattened_dict(choose_row(ROWS, row))
    return config
