"""Multi30k, English to German: 29,000 captions of photographs (Transformer-Tiny).

Not in the paper. `raw`, the default, needs data/multi30k (train, val, test_2016_flickr
as .en.gz and .de.gz) from https://github.com/multi30k/dataset. `tokenized` is what the
literature scores: lower-cased, tokenized text in data/multi30k_bpe (train, valid,
test.2016), with a joint BPE of 10,000 merges whose joins are undone. `tokenized_simcut`
adds SimCut, and `tokenized_ema` keeps a moving average of the parameters.

    python -m t2t_jax.main --config=multi30k_en_de:tokenized --workdir=runs/tokenized
    python -m t2t_jax.main --mode=average --last=10 --workdir=runs/tokenized --to=M
    python -m t2t_jax.main --mode=evaluate --protocol=tokenized --lowercase \
      --workdir=M --source=data/multi30k_bpe/test.2016.en.gz \
      --reference=data/multi30k_bpe/test_2016_flickr.lc.norm.tok.de.gz

Published, of text alone: 41.02, BLEU of tokens. Score of `tokenized`: 41.03; of its
`_ema` and `_simcut`, and of `raw`: docs/results.md.
"""

import os

from t2t_jax.config import choose_row, default

DATA = os.environ.get("T2T_JAX_TEST_DATA", "data")
FILES = f"text:{DATA}/{{0}}.en.gz,{DATA}/{{0}}.de.gz"
TOKENIZED = {
    "data.train": FILES.format("multi30k_bpe/train"),
    "data.dev": FILES.format("multi30k_bpe/valid"),
    "data.subword_joiner": "@@",
    "evaluation.tokenize": "none",
}
SIMCUT = {"training.simcut": 3.0}  # arXiv 2206.02368
EMA = {"training.ema_decay": 0.999}
ROWS = {"raw": {}, "tokenized": TOKENIZED}
ROWS |= {"tokenized_simcut": TOKENIZED | SIMCUT, "tokenized_ema": TOKENIZED | EMA}


def get_config(row="raw"):
    """Returns the configuration of one row."""
    config = default()
    config.steps = 8_000
    config.training.loss_chunks = 16  # saves time where d_model is small
    config.data.train = FILES.format("multi30k/train")
    config.data.dev = FILES.format("multi30k/val")
    config.data.tokens_per_batch = 8_192  # token slots a side
    config.data.row_length = config.data.max_length = 64  # slots, subwords
    config.vocabulary.size = 10_000
    config.model.num_layers = 4
    config.model.d_model, config.model.d_ff = 128, 256
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
    config.update_from_flattened_dict(choose_row(ROWS, row))
    return config
