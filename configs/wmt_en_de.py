"""WMT 2014 English to German, the paper's base model: Table 3, row base.

All settings of the model, the optimizer and the search are the defaults. The
text is TFDS's wmt14_translate/de-en: Europarl, Common Crawl and News Commentary, 4.5
million pairs, and newstest2013. TFDS prepares it once, from 1.7 GB:
    tfds build wmt14_translate/de-en --file_format=array_record
To use other text, set
--config.data.train=text:train.en,train.de and --config.data.dev=text:dev.en,dev.de.

    python -m t2t_jax.main --config=wmt_en_de
    python -m t2t_jax.main --mode=evaluate --protocol=vaswani2017 \
      --workdir=runs/wmt_en_de --source=newstest2014.en --reference=newstest2014.de

Hardware in the paper: 8 P100, 12 hours. In the paper: 25.8 on newstest2013, 27.3 on
newstest2014 (wmt14/full, 3,003 lines), tokenized BLEU. Score: not run yet.
"""

from t2t_jax.config import default


def get_config():
    """Returns the configuration."""
    config = default()
    config.data.train = "tfds:wmt14_translate/de-en:train:en-de"
    config.data.dev = "tfds:wmt14_translate/de-en:validation:en-de"
    config.data.held_out = "tfds:wmt14_translate/de-en:test:en-de"
    return config
