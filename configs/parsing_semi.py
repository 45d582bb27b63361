"""Constituency parsing, semi-supervised: §6.3, Table 4.

The trees of configs/parsing_wsj.py, and "approximately 17M sentences" that parsers
annotated, the high-confidence and BerkeleyParser corpora of the paper's reference 37:
they are not published. Put trees of your own parsers over other text into data/semi.
Rows, and what is marked `open`, are as in configs/parsing_wsj.py.

    python -m t2t_jax.main --config=parsing_semi:dropout_0.1_rate_1
    python -m t2t_jax.main --mode=evaluate --protocol=parsing --last=5 \
      --workdir=runs/parsing_semi --reference=data/wsj/test.mrg

Hardware in the paper: not printed. In the paper: F1 92.7. Score: not run yet.
"""

from t2t_jax.config import choose_row, default
from t2t_jax.run.description.parsing import CONFIGURED, ROWS


def get_config(row="base"):
    """Returns the configuration of one row; tags and weights of corpora are open."""
    config = default()
    config.update_from_flattened_dict(CONFIGURED)
    config.data.train = "trees:data/wsj/train.mrg++trees:data/semi/silver.mrg.gz"
    config.data.dev = "trees:data/wsj/dev.mrg"  # F1 of it counts punctuation: no tags
    config.vocabulary.source_size = 32_000  # "32K tokens": open of which side and kind
    config.update_from_flattened_dict(choose_row(ROWS, row))
    return config
