"""Constituency parsing, Wall Street Journal only: §6.3, Table 4.

The Penn Treebank is https://catalog.ldc.upenn.edu/LDC99T42: join sections 02 to 21 as
data/wsj/train.mrg ("about 40K" trees), 22 as dev.mrg and 23 as test.mrg. The paper
chose dropout, "both attention and residual", learning rate and beam on section 22 and
prints the beam alone: rows try dropout and rate. "All other parameters remained
unchanged" from the base model. What else it does not say is marked `open`.

    python -m t2t_jax.main --config=configs/parsing_wsj.py:dropout_0.2_rate_1
    python -m t2t_jax.main --mode=evaluate --protocol=parsing --last=5
      --workdir=runs/parsing_wsj --reference=data/wsj/test.mrg

Hardware in the paper: not printed. In the paper: F1 91.3. Score: not run yet.
"""

from t2t_jax.config import choose_row, default

EQUATION_3 = 4.9411e-4  # its peak: 1,024 ** -0.5 * 4,000 ** -0.5
ROWS = {
    f"dropout_{dropout:g}_rate_{rate:g}": {
        "model.dropout": dropout,
        "model.attention_dropout": dropout,
        "optimizer.peak_learning_rate": rate * EQUATION_3,
    }
    for dropout in (0.1, 0.2, 0.3, 0.4)
    for rate in (0.5, 1.0, 2.0)
}
ROWS["base"] = {}  # dropout and learning rate of the base model


def get_config(row="base"):
    """Returns the configuration of one row."""
    config = default()
    config.data.train = "trees:data/wsj/train.mrg"  # without tags: open
    config.data.dev = "trees:data/wsj/dev.mrg"
    config.data.row_length = config.data.max_length = 512  # open; no tree is longer
    config.vocabulary.source_size = 16_000  # "16K tokens": open of which side and kind
    config.vocabulary.size = 128  # symbols, at most
    config.vocabulary.unit = "words"
    config.model.num_layers = 4
    config.model.d_model = 1_024
    config.model.d_k = config.model.d_v = 128  # d_model / h
    config.model.tying = "decoder"  # sides with their own vocabularies
    config.decoding.beam_size = 21
    config.decoding.length_penalty = 0.3
    config.decoding.max_extra_tokens = 300
    config.decoding.tokens_per_batch = 32_768  # token slots of all beams
    config.update_from_flattened_dict(choose_row(ROWS, row))
    return config
