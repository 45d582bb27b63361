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

With pairs, a Linen module and an optimizer of your own, and the rest as it is:

    t2t_jax.train(config, "runs/own", train=pairs, module=module, optimizer=optimizer)

Import one of Marian, Hugging Face, fairseq or tensor2tensor:

    model = t2t_jax.import_model("opus-mt-en-de", to="models/en-de")

Write a loop of your own, on any mesh and with any loss:

    state = t2t_jax.init_state(module, optimizer, 0)
    step = t2t_jax.make_train_step(module, optimizer)
    state, output = step(state, batch, jax.random.key(1))

Search or sample on arrays, with a trained model or any other `StepModel`:

    result = t2t_jax.beam_search(model.step_model, model.encode(lines))
    model.decode(result.tokens_BxWxT[:, 0])

Train it further in Flax NNX, and save it:

    net = t2t_jax.to_nnx(model)                           # an nnx.Module
    t2t_jax.from_nnx(net, model).translate(["A dog barks."])
    t2t_jax.save_model("runs/tuned", t2t_jax.from_nnx(net, model), like="runs/mine")

`Transformer` and `TransformerConfig` are the Linen module and its configuration. Errors
that a user can fix are `UserError`s. Axis letters such as B, S and T are explained in
`t2t_jax.types`. Names are imported on first use, so that `import t2t_jax` is fast.
"""

from __future__ import annotations

from t2t_jax.version import __version__

TYPE_CHECKING = False  # as in typing, whose import takes longer than all else here
if TYPE_CHECKING:
    from typing import Any

    from t2t_jax.api import train as train
    from t2t_jax.checkpointing.checkpoints import Checkpoints as Checkpoints
    from t2t_jax.config import Config as Config
    from t2t_jax.config_files import default_config as default_config
    from t2t_jax.config_files import load_config as load_config
    from t2t_jax.data.batching.pipeline import batches as batches
    from t2t_jax.data.vocabulary.vocabulary import Vocabulary as Vocabulary
    from t2t_jax.decoding.config import DecodingConfig as DecodingConfig
    from t2t_jax.decoding.scoring.scorer import PairScore as PairScore
    from t2t_jax.decoding.search.beam_search import BeamResult as BeamResult
    from t2t_jax.decoding.search.beam_search import beam_search as beam_search
    from t2t_jax.decoding.search.constraint import Constraint as Constraint
    from t2t_jax.decoding.search.sampling import sample as sample
    from t2t_jax.decoding.search.static_params import BeamParams as BeamParams
    from t2t_jax.decoding.search.static_params import SamplingParams as SamplingParams
    from t2t_jax.decoding.text.translation import Hypothesis as Hypothesis
    from t2t_jax.decoding.text.translation import Translation as Translation
    from t2t_jax.devices.sharding.mesh import make_mesh as make_mesh
    from t2t_jax.errors import UserError as UserError
    from t2t_jax.exchange.importing.importer import import_model as import_model
    from t2t_jax.exchange.nnx import from_nnx as from_nnx
    from t2t_jax.exchange.nnx import to_nnx as to_nnx
    from t2t_jax.model.architectures import step_model as step_model
    from t2t_jax.model.config import TransformerConfig as TransformerConfig
    from t2t_jax.model.transformer import Transformer as Transformer
    from t2t_jax.run.inference.load import load as load
    from t2t_jax.run.inference.load import translate as translate
    from t2t_jax.run.inference.model import TranslationModel as TranslationModel
    from t2t_jax.run.inference.model import evaluate as evaluate
    from t2t_jax.run.inference.model_dir import save_model as save_model
    from t2t_jax.training.config import TrainingConfig as TrainingConfig
    from t2t_jax.training.loss import batch_logits as batch_logits
    from t2t_jax.training.state import TrainState as TrainState
    from t2t_jax.training.state import init_state as init_state
    from t2t_jax.training.step import make_train_step as make_train_step
    from t2t_jax.types import Batch as Batch
    from t2t_jax.types import StepModel as StepModel

_EXPORTS = {
    "api": "train",
    "checkpointing.checkpoints": "Checkpoints",
    "config": "Config",
    "config_files": "default_config load_config",
    "data.batching.pipeline": "batches",
    "data.vocabulary.vocabulary": "Vocabulary",
    "decoding.config": "DecodingConfig",
    "decoding.scoring.scorer": "PairScore",
    "decoding.search.beam_search": "BeamResult beam_search",
    "decoding.search.constraint": "Constraint",
    "decoding.search.sampling": "sample",
    "decoding.search.static_params": "BeamParams SamplingParams",
    "decoding.text.translation": "Hypothesis Translation",
    "devices.sharding.mesh": "make_mesh",
    "errors": "UserError",
    "exchange.importing.importer": "import_model",
    "exchange.nnx": "from_nnx to_nnx",
    "model.architectures": "step_model",
    "model.config": "TransformerConfig",
    "model.transformer": "Transformer",
    "run.inference.load": "load translate",
    "run.inference.model": "TranslationModel evaluate",
    "run.inference.model_dir": "save_model",
    "training.config": "TrainingConfig",
    "training.loss": "batch_logits",
    "training.state": "TrainState init_state",
    "training.step": "make_train_step",
    "types": "Batch StepModel",
}

LAZY_EXPORTS = {
    name: f"t2t_jax.{module}"
    for module, names in _EXPORTS.items()
    for name in names.split()
}

__all__ = ["__version__", *LAZY_EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in LAZY_EXPORTS:
        raise AttributeError(f"module 't2t_jax' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(LAZY_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
