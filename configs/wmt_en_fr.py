"""WMT 2014 English to French, the paper's base model: Table 2, row "base model".

Put the training text of https://www.statmt.org/wmt14/translation-task.html for
French-English (Europarl, Common Crawl, UN, News Commentary and 10^9, one after the
other: 36 million pairs) and the plain text of newstest2013 into data/wmt14, then

    python -m t2t_jax.main --config=configs/wmt_en_fr.py
    python -m t2t_jax.main --mode=evaluate --protocol=vaswani2017 --target_language=fr \
      --workdir=runs/wmt_en_fr --source=newstest2014.en --reference=newstest2014.fr

Hardware in the paper: 8 P100, 12 hours. In the paper: 38.1 on newstest2014, tokenised
BLEU. Score: not run yet.
"""

import os

from t2t_jax.config import default

DATA = os.environ.get("T2T_JAX_TEST_DATA", "data") + "/wmt14"


def get_config():
    """Returns the configuration."""
    config = default()
    config.data.train = f"text:{DATA}/train.fr-en.en,{DATA}/train.fr-en.fr"
    config.data.dev = f"text:{DATA}/newstest2013.en,{DATA}/newstest2013.fr"
    config.vocabulary.size = 32_000  # word pieces, §5.1
    return config
