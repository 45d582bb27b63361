"""WMT 2014 English to German, the paper's big model: Table 3, row big.

Data as in configs/wmt_en_de.py, then

    python -m t2t_jax.main --config=wmt_en_de_big
    python -m t2t_jax.main --mode=evaluate --protocol=vaswani2017 \
      --workdir=runs/wmt_en_de_big --source=newstest2014.en --reference=newstest2014.de

Hardware in the paper: 8 P100, 3.5 days. In the paper: perplexity 4.33 and BLEU 26.4 on
newstest2013, 28.4 on newstest2014, tokenized. Score: not run yet.
"""

from t2t_jax.config import default


def get_config():
    """Returns the configuration."""
    config = default()
    config.data.train = "tfds:wmt14_translate/de-en:train:en-de"
    config.data.dev = "tfds:wmt14_translate/de-en:validation:en-de"
    config.data.held_out = "tfds:wmt14_translate/de-en:test:en-de"
    config.steps = 300_000
    config.checkpoint.keep = 20  # the last 20 are averaged, §6.1
    config.model.d_model = 1_024
    config.model.d_ff = 4_096
    config.model.num_heads = 16
    config.model.dropout = 0.3
    return config
