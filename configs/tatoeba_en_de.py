"""Tatoeba, English to German: 154,600 everyday sentences, 6.5 words on average.

Not in the paper; a model for everyday text, to be fine-tuned on text of a domain with
configs/fine_tune.py. The text is of https://tatoeba.org, in pairs at
https://www.manythings.org/anki (CC BY 2.0). Put train and dev, with no sentence in
both, as .en.gz and .de.gz into data/tatoeba, then

    python -m t2t_jax.main --config=tatoeba_en_de
    python -m t2t_jax.main --mode=evaluate --workdir=runs/tatoeba_en_de \
      --source=data/tatoeba/dev.en.gz --reference=data/tatoeba/dev.de.gz

docs/how_to/fine_tuning.md has the commands that train it further, and score it before
and after. Score: 47.12 (docs/results.md).
"""

import os

from t2t_jax.config import default

DATA = os.environ.get("T2T_JAX_TEST_DATA", "data") + "/tatoeba"


def get_config():
    """Returns the configuration."""
    config = default()
    config.steps = 10_000
    config.data.train = f"text:{DATA}/train.en.gz,{DATA}/train.de.gz"
    config.data.dev = f"text:{DATA}/dev.en.gz,{DATA}/dev.de.gz"
    config.data.drop_duplicates = True
    config.data.tokens_per_batch = 8_192  # token slots a side
    config.data.row_length = 128  # slots
    config.data.max_length = 128  # subwords
    config.vocabulary.size = 8_000
    config.vocabulary.byte_fallback = True  # for characters of other domains
    config.model.num_layers = 3
    config.model.d_model = 256
    config.model.d_ff = 1_024
    config.model.num_heads = 4
    config.model.dropout = 0.2
    config.optimizer.warmup_steps = 2_000  # steps
    config.optimizer.peak_learning_rate = 2e-3
    config.evaluation.every_steps = 500
    config.checkpoint.every_minutes = 0.0
    config.checkpoint.every_steps = 500
    config.decoding.beam_size = 4
    return config
