"""Your own parallel text: two aligned files, one sentence a line, UTF-8 or .gz.

Change the two lines below, and the workdir in the command:

    python -m t2t_jax.main --config=configs/own_text.py --workdir=runs/mine
    python -m t2t_jax.main --mode=translate --workdir=runs/mine < in.txt > out.txt

The first 1,000 pairs are kept out to score the training; if you have a development set
of your own, name its files in `data.dev` and take the slice off `data.train`.
The sizes suit 50,000 to 500,000 pairs. With fewer take a smaller model and more dropout
(configs/multi30k_en_de.py); with millions take out the lines under "Model", which
leaves the paper's base model.
Score: depends on your text.
"""

from t2t_jax.config import default

SOURCE = "train.en"
TARGET = "train.de"


def get_config():
    """Returns the configuration."""
    config = default()
    config.data.train = f"text:{SOURCE},{TARGET}[1000:]"
    config.data.dev = f"text:{SOURCE},{TARGET}[:1000]"
    config.vocabulary.size = 8_000  # subwords; about 8,000 for 100,000 pairs
    config.steps = 20_000
    config.data.tokens_per_batch = 8_192  # token slots a side
    config.data.row_length = 128  # slots
    config.data.max_length = 128  # subwords; longer pairs are left out and counted
    config.evaluation.every_steps = 1_000
    config.checkpoint.every_steps = 1_000
    config.checkpoint.every_minutes = 0.0  # off: every_steps alone spaces them evenly

    # Model
    config.model.num_layers = 3
    config.model.d_model = 256
    config.model.d_ff = 1_024
    config.model.num_heads = 4
    config.model.d_k = config.model.d_v = 64
    config.model.dropout = 0.2
    config.optimizer.warmup_steps = 2_000  # steps
    config.optimizer.peak_learning_rate = 2e-3
    return config
