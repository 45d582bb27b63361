"""Table 3: variations on the base model, WMT 2014 English to German. §6.2.

    python -m t2t_jax.main --config=table3:A_h1
    python -m t2t_jax.main --config=table3:A_h1 --mode=describe

Data as in configs/wmt_en_de.py. The rows, from `base` and `A_h1` to `E_learned` and
`big`, are in t2t_jax/run/description/table3_rows.py: the keys that each changes, and
the perplexity, BLEU and parameters that the paper prints. Score: not run yet, no row.
"""

from t2t_jax.config import choose_row, default
from t2t_jax.run.description.table3_rows import TABLE_3

ROWS = {name: dict(row.changes) for name, row in TABLE_3.items()}
ROWS["E_learned"]["decoding.max_source_length"] = 256  # no later position is trained
ROWS["big"]["checkpoint.keep"] = 20


def get_config(row=""):
    """Returns the configuration of one row."""
    config = default()
    config.data.train = "tfds:wmt14_translate/de-en:train:en-de"
    config.data.dev = "tfds:wmt14_translate/de-en:validation:en-de"
    config.data.held_out = "tfds:wmt14_translate/de-en:test:en-de"
    config.update_from_flattened_dict(choose_row(ROWS, row))
    return config
