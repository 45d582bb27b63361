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

LAZY_EXPORTS = {
    "Batch": "t2t_jax.types",
    "BeamParams": "t2t_jax.decoding.search.static_params",
    "BeamResult": "t2t_jax.decoding.search.beam_search",
    "Checkpoints": "t2t_jax.checkpointing.checkpoints",
    "Config": "t2t_jax.config",
    "Constraint": "t2t_jax.decoding.search.constraint",
    "DecodingConfig": "t2t_jax.decoding.config",
    "Hypothesis": "t2t_jax.decoding.text.translation",
    "PairScore": "t2t_jax.decoding.scoring.scorer",
    "SamplingParams": "t2t_jax.decoding.search.static_params",
    "StepModel": "t2t_jax.types",
    "TrainState": "t2t_jax.training.state",
    "TrainingConfig": "t2t_jax.training.config",
    "Transformer": "t2t_jax.model.transformer",
    "TransformerConfig": "t2t_jax.model.config",
    "Translation": "t2t_jax.decoding.text.translation",
    "TranslationModel": "t2t_jax.run.inference.model",
    "UserError": "t2t_jax.errors",
    "batch_logits": "t2t_jax.training.loss",
    "Vocabulary": "t2t_jax.data.vocabulary.vocabulary",
    "batches": "t2t_jax.data.batching.pipeline",
    "beam_search": "t2t_jax.decoding.search.beam_search",
    "default_config": "t2t_jax.config_files",
    "evaluate": "t2t_jax.run.inference.model",
    "from_nnx": "t2t_jax.exchange.nnx",
    "import_model": "t2t_jax.exchange.importing.importer",
    "init_state": "t2t_jax.training.state",
    "load": "t2t_jax.run.inference.load",
    "load_config": "t2t_jax.config_files",
    "make_mesh": "t2t_jax.devices.sharding.mesh",
    "make_train_step": "t2t_jax.training.step",
    "sample": "t2t_jax.decoding.search.sampling",
    "save_model": "t2t_jax.run.inference.model_dir",
    "step_model": "t2t_jax.model.architectures",
    "to_nnx": "t2t_jax.exchange.nnx",
    "train": "t2t_jax.api",
    "translate": "t2t_jax.run.inference.load",
}

__all__ = ["__version__", *LAZY_EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in LAZY_EXPORTS:
        raise AttributeError(f"module 't2t_jax' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(LAZY_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
