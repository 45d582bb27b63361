"""Constituency parsing on GUM: 10,224 English sentences, a model for two cores (§6.3).

Not in the paper. The treebank is https://github.com/amir-zeldes/gum, its constituents
automatic parses of gold tags ("silver"): put train, dev and test as .ptb.gz into
data/gum. `rnn` is the recurrent baseline with as many parameters, 4.1 million.

    python -m t2t_jax.main --config=parsing_gum

Score: F1 62.2 on test, 66.6 with `decoding.constraint=tree`, 8,000 steps, 58 minutes on
one core; rnn 73.6 and 76.3, 2,000 steps, 31 minutes, stopped early; right-branching
trees 17.1. AMD EPYC, JAX 0.10.2, 2026-11-23; docs/how_to/parsing.md has the table.
"""

import os

from t2t_jax.config import choose_row, default

DATA = os.environ.get("T2T_JAX_TEST_DATA", "data") + "/gum"
MUON = {
    "optimizer.name": "muon",
    "optimizer.peak_learning_rate": 6e-3,
    "optimizer.adam_learning_rate": 3e-3,
}
ROWS = {
    "transformer": MUON,
    "rnn": {"architecture": "rnn", "optimizer.peak_learning_rate": 4e-3},
}


def get_config(row="transformer"):
    """Returns the configuration of one row."""
    config = default()
    config.steps = 8_000
    config.data.train = f"trees:{DATA}/train.ptb.gz#numbers"
    config.data.dev = f"trees:{DATA}/dev.ptb.gz#numbers[:300]"
    config.data.tokens_per_batch = 2_048  # token slots a side
    config.data.row_length = 256  # slots
    config.data.packed_row_lengths = 3  # of 256, 128 and 64 slots
    config.data.max_length = 256  # symbols
    config.vocabulary.size = 384
    config.vocabulary.unit = "words"
    config.vocabulary.source_size = 5_000
    config.vocabulary.source_unit = "words"
    config.model.num_layers = 3
    config.model.d_model = 192
    config.model.d_ff = 768
    config.model.num_heads = 6
    config.model.d_k = config.model.d_v = 32
    config.model.dropout = 0.15
    config.model.norm_position = "pre"
    config.model.tying = "decoder"
    config.rnn.d_model = 192
    config.rnn.d_hidden = 312
    config.rnn.d_attention = 192
    config.rnn.dropout = 0.2
    config.rnn.tying = "decoder"
    config.optimizer.warmup_steps = 300  # steps
    config.evaluation.every_steps = 500
    config.checkpoint.every_steps = 250
    config.checkpoint.keep = 10
    config.checkpoint.every_minutes = 0.0
    config.training.ema_decay = 0.999
    config.decoding.beam_size = 4
    config.decoding.max_source_length = 256  # words
    config.decoding.max_extra_tokens = 300
    config.logging.every_steps = 50
    config.update_from_flattened_dict(choose_row(ROWS, row))
    return config
