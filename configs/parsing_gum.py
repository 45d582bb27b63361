"""Constituency parsing on GUM: 10,224 English sentences, a model for two cores (§6.3).

Not in the paper. The treebank is https://github.com/amir-zeldes/gum, its constituents
automatic parses of gold tags ("silver"). Put train, dev and test as .ptb.gz into
data/gum. `rnn` is the recurrent baseline with as many parameters, 1.65 million.

    python -m t2t_jax.main --config=parsing_gum
    python -m t2t_jax.main --mode=evaluate --protocol=parsing
      --workdir=runs/parsing_gum --reference=data/gum/test.ptb.gz

Score, stopped early: F1 32.1 on the first 300 trees of dev, 30.4 of test, at step 2,737
after 32 minutes; rnn 40.9 and 40.5, step 1,643, 29 minutes; right-branching trees 17.5
and 16.0. Greedy, at most 150 symbols more than words; two cores (AMD EPYC, 2026-11-23)
under a load of 10 to 25 from other programs. All 8,000 steps: not run yet.
"""

import os

from t2t_jax.config import choose_row, default

DATA = os.environ.get("T2T_JAX_TEST_DATA", "data") + "/gum"
ROWS = {"transformer": {}, "rnn": {"architecture": "rnn"}}


def get_config(row="transformer"):
    """Returns the configuration of one row."""
    config = default()
    config.steps = 8_000
    config.data.train = f"trees:{DATA}/train.ptb.gz#tags"
    config.data.dev = f"trees:{DATA}/dev.ptb.gz#tags[:300]"
    config.data.tokens_per_batch = 1_024  # token slots a side
    config.data.row_length = 128  # slots
    config.data.max_length = 128  # symbols; 3 % of the trees have more
    config.vocabulary.size = 128
    config.vocabulary.unit = "words"
    config.vocabulary.source_size = 5_000
    config.vocabulary.source_unit = "words"
    config.model.num_layers = 3
    config.model.d_model = 128
    config.model.d_ff = 256
    config.model.num_heads = 4
    config.model.d_k = config.model.d_v = 32
    config.model.dropout = 0.1
    config.model.tying = "decoder"
    config.rnn.d_model = 128
    config.rnn.d_hidden = 172
    config.rnn.d_attention = 128
    config.rnn.dropout = 0.1
    config.rnn.tying = "decoder"
    config.optimizer.warmup_steps = 800  # steps
    config.optimizer.peak_learning_rate = 1.5e-3
    config.evaluation.every_steps = 2_000
    config.checkpoint.every_steps = 300
    config.checkpoint.keep = 10
    config.checkpoint.every_minutes = 0.0
    config.decoding.beam_size = 4
    config.decoding.max_extra_tokens = 300
    config.logging.every_steps = 50
    config.update_from_flattened_dict(choose_row(ROWS, row))
    return config
