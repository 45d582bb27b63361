"""Attention Is All You Need, in JAX: train, evaluate and run translation Transformers.

Use a trained model:

    model = t2t_jax.load("runs/phrasebook")
    model.translate(["The old teacher reads a book."])    # a list of strings
    model.translations(lines, n_best=3)                   # with scores and tokens
    model.score(sources, targets)                         # log-probabilities

Train one:

    config = t2t_jax.load_config("phrasebook")            # or default_config()
    config.steps = 200
    model = t2t_jax.train(config, "runs/mine")

Search with a model of your own, or with a trained one, on arrays:

    result = t2t_jax.beam_search(model.step_model, model.encode(lines))
    model.decode(result.tokens_BxWxT[:, 0])

`Transformer` and `TransformerConfig` are the Linen module and its settings. Every error
that a user can fix is a `UserError`. Axis letters such as B, S and T are explained in
`t2t_jax.types`. Names are imported when they are first used, so that `import t2t_jax`
costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, whose import takes longer than all else here
if TYPE_CHECKING:
    from typing import Any

    from t2t_jax.config import Config as Config
    from t2t_jax.config_files import default_config as default_config
    from t2t_jax.config_files import load_config as load_config
    from t2t_jax.decoding.beam_search import BeamResult as BeamResult
    from t2t_jax.decoding.beam_search import beam_search as beam_search
    from t2t_jax.decoding.config import DecodingConfig as DecodingConfig
    from t2t_jax.decoding.rules import SampleRules as SampleRules
    from t2t_jax.decoding.sampling import sample as sample
    from t2t_jax.decoding.scoring import PairScore as PairScore
    from t2t_jax.decoding.translation import Hypothesis as Hypothesis
    from t2t_jax.decoding.translation import Translation as Translation
    from t2t_jax.errors import UserError as UserError
    from t2t_jax.loading import load as load
    from t2t_jax.loading import translate as translate
    from t2t_jax.model.config import TransformerConfig as TransformerConfig
    from t2t_jax.model.transformer import Transformer as Transformer
    from t2t_jax.start_training import train as train
    from t2t_jax.trained import Model as Model
    from t2t_jax.types import StepModel as StepModel

__version__ = "0.1.0"

_HOME = {
    "BeamResult": "t2t_jax.decoding.beam_search",
    "Config": "t2t_jax.config",
    "DecodingConfig": "t2t_jax.decoding.config",
    "Hypothesis": "t2t_jax.decoding.translation",
    "Model": "t2t_jax.trained",
    "PairScore": "t2t_jax.decoding.scoring",
    "SampleRules": "t2t_jax.decoding.rules",
    "StepModel": "t2t_jax.types",
    "Transformer": "t2t_jax.model.transformer",
    "TransformerConfig": "t2t_jax.model.config",
    "Translation": "t2t_jax.decoding.translation",
    "UserError": "t2t_jax.errors",
    "beam_search": "t2t_jax.decoding.beam_search",
    "default_config": "t2t_jax.config_files",
    "load": "t2t_jax.loading",
    "load_config": "t2t_jax.config_files",
    "sample": "t2t_jax.decoding.sampling",
    "train": "t2t_jax.start_training",
    "translate": "t2t_jax.loading",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 't2t_jax' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
