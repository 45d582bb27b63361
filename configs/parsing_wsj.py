"""Constituency parsing, Wall Street Journal only: §6.3, Table 4.

The Penn Treebank is https://catalog.ldc.upenn.edu/LDC99T42: join sections 02 to 21 as
data/wsj/train.mrg ("about 40K" trees), 22 as dev.mrg and 23 as test.mrg. The paper
chose dropout, "both attention and residual", learning rate and beam on section 22 and
prints the beam alone: rows try dropout and rate. "All other parameters remained
unchanged" from the base model. What else it does not say is marked `open`, here and in
t2t_jax/run/description/parsing.py, which has the keys of both of the paper's parsers.

    python -m t2t_jax.main --config=parsing_wsj:dropout_0.2_rate_1
    python -m t2t_jax.main --mode=evaluate --protocol=parsing --last=5 \
      --workdir=runs/parsing_wsj --reference=data/wsj/test.mrg

Hardware in the paper: not printed. In the paper: F1 91.3. Score: not run yet.
"""

from t2t_jax.config import choose_row, default
from t2t_jax.run.description.parsing import CONFIGURED, ROWS


def get_config(row="base"):
    """Returns the configuration of one row."""
    config = default()
    config.update_from_flattened_dict(CONFIGURED)
    config.data.train = "trees:data/wsj/train.mrg"  # without tags: open
    config.data.dev = "trees:data/wsj/dev.mrg"  # F1 of it counts punctuation: no tags
    config.vocabulary.source_size = 16_000  # "16K tokens": open of which side and kind
    config.update_from_flattened_dict(choose_row(ROWS, row))
    return config
