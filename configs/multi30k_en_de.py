"""Multi30k, English to German: 29,000 captions of photographs (Transformer-Tiny).

Not in the paper; the smallest real corpus on which its model is worth training.
Put the raw files of https://github.com/multi30k/dataset into data/multi30k
(train, val and test_2016_flickr as .en.gz and .de.gz), then

    python -m t2t_jax.main --config=configs/multi30k_en_de.py
    python -m t2t_jax.main --mode=average --last=10 --workdir=runs/multi30k_en_de --to=M

Score of the whole recipe: not run yet. On two CPU cores (AMD EPYC, 2026-11-21) with
tokens_per_batch=4096, steps=3000, warmup_steps=800, peak_learning_rate=3e-3: 40 minutes
of training, 36.85 on test_2016_flickr without averaging
(nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0).
"""

import os

from t2t_jax.config import default

DATA = os.environ.get("T2T_JAX_TEST_DATA", "data") + "/multi30k"


def get_config():
    """Returns the configuration."""
    config = default()
    config.steps = 8_000
    config.data.train = f"text:{DATA}/train.en.gz,{DATA}/train.de.gz"
    config.data.dev = f"text:{DATA}/val.en.gz,{DATA}/val.de.gz"
    config.data.tokens_per_batch = 8_192  # token slots a side
    config.data.row_length = 64  # slots
    config.data.max_length = 64  # subwords
    config.vocabulary.size = 10_000
    config.model.num_layers = 4
    config.model.d_model = 128
    config.model.d_ff = 256
    config.model.num_heads = 4
    config.model.d_k = config.model.d_v = 32
    config.model.dropout = 0.3
    config.optimizer.warmup_steps = 2_000  # steps
    config.optimizer.peak_learning_rate = 5e-3
    config.evaluation.every_steps = 500
    config.checkpoint.every_minutes = 0.0
    config.checkpoint.every_epochs = 1
    config.checkpoint.keep = 10  # the recipe averages the last 10 epochs
    config.decoding.beam_size = 5
    return config
