"""Fine-tuning: a trained or imported model is trained further on text of its domain.

Network and vocabulary are those of the model; leave their keys out.

    python -m t2t_jax.main --config=fine_tune --config.init_from=runs/base \
      --config.data.train=text:mine.en,mine.de --workdir=runs/mine

To keep what the model knows, mix in text of its training, each pair half as often:
--config.data.train='2*text:mine.en,mine.de++1*text:old.en,old.de'.
Score: 10.0 on Debian's text, from 3.8 (docs/results.md).
"""

from t2t_jax.config import default


def get_config():
    """Returns the configuration."""
    config = default()
    config.init_from = "MODEL"  # a run or model
    config.steps = 2_000
    config.data.train = "text:train.en,train.de"
    config.data.dev_pairs = 500
    config.data.tokens_per_batch = 4_096  # token slots a side
    config.model.dropout = 0.1
    config.optimizer.warmup_steps = 100  # steps
    config.optimizer.peak_learning_rate = 3e-4
    config.evaluation.every_steps = 100
    config.evaluation.patience = 5  # evaluations
    config.checkpoint.every_steps = 500
    config.checkpoint.every_minutes = 0.0
    return config
