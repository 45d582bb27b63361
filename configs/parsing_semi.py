"""Constituency parsing, semi-supervised: §6.3, Table 4.

The trees of configs/parsing_wsj.py, and "approximately 17M sentences" that parsers
annotated, the high-confidence and BerkeleyParser corpora of the paper's reference 37:
they are not published. Put trees of your own parsers over other text into data/semi.
Dropout, rate, rows and what is marked `open` are as in configs/parsing_wsj.py.

    python -m t2t_jax.main --config=configs/parsing_semi.py:dropout_0.1_rate_1
    python -m t2t_jax.main --mode=evaluate --protocol=parsing --last=5
      --workdir=runs/parsing_semi --reference=data/wsj/test.mrg

Hardware in the paper: not printed. In the paper: F1 92.7. Score: not run yet.
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
    """Returns the configuration of one row; tags and weights of corpora are open."""
    config = default()
    config.data.train = "trees:data/wsj/train.mrg++trees:data/semi/silver.mrg.gz"
    config.data.dev = "trees:data/wsj/dev.mrg"
    config.data.row_length = config.data.max_length = 512  # open; no tree is longer
    config.vocabulary.source_size = 32_000  # "32K tokens": open of which side and kind
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
