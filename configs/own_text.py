"""Your own parallel text: two aligned files, one sentence a line, UTF-8 or .gz.

Choose a row by the number of sentence pairs, and name your files in TEXT below, or on
the command line with --config.data.train=text:SOURCE,TARGET, the language that is
translated first:

    python -m t2t_jax.main --config=own_text:small --workdir=runs/mine
    python -m t2t_jax.main --mode=translate --workdir=runs/mine < in.txt > out.txt

row     pairs              subwords  layers  d_model  dropout    steps   slots
small   5,000 to 50,000       4,000       4      128      0.3    3,000   8,192
quick   50,000 to 500,000     8,000       3      192      0.0    2,000   4,096
medium  50,000 to 500,000     8,000       3      256      0.2   20,000   8,192
large   more                 32,000       6      512      0.1  100,000  24,576
student from a teacher        8,000       6      256      0.1   60,000   8,192

A step's batch has so many slots for sources, and as many for targets. A slot is the
place of one token, padding included. The first 1,000 pairs are held out for scores;
with development files of your own, --config.data.dev=text:SOURCE,TARGET, all pairs are
used for training. Fewer pairs want fewer subwords and more dropout (Sennrich and Zhang
2019, arXiv 1905.11901; Araabi and Monz 2020, arXiv 2011.02266). small is the model of
configs/multi30k_en_de.py, medium that of configs/tatoeba_en_de.py; quick is an hour of
two CPU cores, large the paper's base, and student for pairs of --mode=distill.
Score: small 37.3 on Multi30k, quick 27.2 on Debian (docs/results.md); others not run.
"""

from t2t_jax.config import choose_row, default

TEXT = "text:train.en,train.de"  # or tsv:pairs.tsv: source, tab, target

KEYS = """vocabulary.size model.num_layers model.d_model model.d_ff model.num_heads
model.d_k model.d_v model.dropout steps data.tokens_per_batch optimizer.warmup_steps
optimizer.peak_learning_rate evaluation.every_steps""".split()

# A peak of 0 is the paper's: (d_model * warmup_steps)^-0.5.
SMALL = 4_000, 4, 128, 256, 4, 32, 32, 0.3, 3_000, 8_192, 2_000, 5e-3, 500
QUICK = 8_000, 3, 192, 768, 4, 48, 48, 0.0, 2_000, 4_096, 800, 3e-3, 500
MEDIUM = 8_000, 3, 256, 1_024, 4, 64, 64, 0.2, 20_000, 8_192, 2_000, 2e-3, 1_000
LARGE = 32_000, 6, 512, 2_048, 8, 64, 64, 0.1, 100_000, 24_576, 4_000, 0.0, 5_000
SIZES = {"small": SMALL, "quick": QUICK, "medium": MEDIUM, "large": LARGE}
ROWS = {row: dict(zip(KEYS, values, strict=True)) for row, values in SIZES.items()}
ROWS["quick"] |= {"training.ema_decay": 0.99, "vocabulary.byte_fallback": True}
ROWS["student"] = ROWS["medium"] | {
    **{"model.num_layers": 6, "model.num_decoder_layers": 2, "model.d_ff": 1_536},
    **{"model.dropout": 0.1, "steps": 60_000, "decoding.beam_size": 1},
}


def get_config(row="medium"):
    """Returns the configuration of one row."""
    config = default()
    config.data.train = TEXT
    config.data.dev_pairs = 1_000
    config.data.row_length = 128  # slots
    config.data.max_length = 128  # subwords; longer pairs are left out and counted
    config.update_from_flattened_dict(choose_row(ROWS, row))
    config.checkpoint.every_steps = config.evaluation.every_steps
    config.checkpoint.every_minutes = 0.0  # off: every_steps alone spaces them evenly
    config.logging.every_steps = 20  # so that the status of a slow run is not old
    return config
