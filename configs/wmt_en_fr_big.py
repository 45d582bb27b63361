"""WMT 2014 English to French, the paper's big model: Table 2, with dropout 0.1 (§6.1).

Data as in configs/wmt_en_fr.py, then

    python -m t2t_jax.main --config=wmt_en_fr_big
    python -m t2t_jax.main --mode=evaluate --protocol=vaswani2017 --target_language=fr \
      --workdir=runs/wmt_en_fr_big --source=newstest2014.en --reference=newstest2014.fr

Hardware in the paper: 8 P100, 3.5 days. In the paper: 41.8 on newstest2014, tokenized
BLEU (41.0 in its first version). Score: not run yet.
"""

from t2t_jax.config import default


def get_config():
    """Returns the configuration."""
    config = default()
    config.data.train = "tfds:wmt14_translate/fr-en:train:en-fr"
    config.data.dev = "tfds:wmt14_translate/fr-en:validation:en-fr"
    config.data.held_out = "tfds:wmt14_translate/fr-en:test:en-fr"
    config.vocabulary.size = 32_000  # §5.1; word pieces there, BPE here
    config.steps = 300_000
    config.checkpoint.keep = 20  # the last 20 are averaged, §6.1
    config.model.d_model = 1_024
    config.model.d_ff = 4_096
    config.model.num_heads = 16
    config.model.dropout = 0.1  # not 0.3 as for English to German
    return config
