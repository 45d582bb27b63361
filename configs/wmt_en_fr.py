"""WMT 2014 English to French, the paper's base model: Table 2, row "base model".

The text is TFDS's wmt14_translate/fr-en: Europarl, Common Crawl, UN, News Commentary
and 10^9, some 40 million pairs, and newstest2013. TFDS prepares it once:
    tfds build wmt14_translate/fr-en --file_format=array_record
To use other text, set
--config.data.train=text:train.en,train.fr and --config.data.dev=text:dev.en,dev.fr.

    python -m t2t_jax.main --config=wmt_en_fr
    python -m t2t_jax.main --mode=evaluate --protocol=vaswani2017 --target_language=fr \
      --workdir=runs/wmt_en_fr --source=newstest2014.en --reference=newstest2014.fr

Hardware in the paper: 8 P100, 12 hours. In the paper: 38.1 on newstest2014 (wmt14/full,
3,003 lines), tokenized BLEU. Score: not run yet.
"""

from t2t_jax.config import default


def get_config():
    """Returns the configuration."""
    config = default()
    config.data.train = "tfds:wmt14_translate/fr-en:train:en-fr"
    config.data.dev = "tfds:wmt14_translate/fr-en:validation:en-fr"
    config.data.held_out = "tfds:wmt14_translate/fr-en:test:en-fr"
    config.vocabulary.size = 32_000  # §5.1; word pieces there, BPE here
    return config
