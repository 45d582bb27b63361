"""WMT 2014 English to German, the paper's base model: Table 3, row base.

Every number of the model, the optimizer and the search is the program's default. Put
the training text of https://www.statmt.org/wmt14/translation-task.html (Europarl,
Common Crawl and News Commentary, one after the other: 4.5 million pairs) and the plain
text of newstest2013 into data/wmt14, then

    python -m t2t_jax.main --config=configs/wmt_en_de.py
    python -m t2t_jax.main --mode=evaluate --protocol=vaswani2017 \
      --workdir=runs/wmt_en_de --source=newstest2014.en --reference=newstest2014.de

Hardware in the paper: 8 P100, 12 hours. In the paper: 25.8 on newstest2013, 27.3 on
newstest2014, tokenised BLEU. Score: not run yet.
"""

import os

from t2t_jax.config import default

DATA = os.environ.get("T2T_JAX_TEST_DATA", "data") + "/wmt14"


def get_config():
    """Returns the configuration."""
    config = default()
    config.data.train = f"text:{DATA}/train.en,{DATA}/train.de"
    config.data.dev = f"text:{DATA}/newstest2013.en,{DATA}/newstest2013.de"
    return config
