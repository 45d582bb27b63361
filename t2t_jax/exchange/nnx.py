"""Models as Flax NNX modules, and back."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
from flax import linen as nn
from flax import nnx

from t2t_jax.data.line_arguments import with_article
from t2t_jax.errors import UserError
from t2t_jax.model.architectures import require_params_of
from t2t_jax.run.inference.load import load
from t2t_jax.run.inference.model import TranslationModel
from t2t_jax.types import Params


def to_nnx(
    model: TranslationModel | nn.Module | str | Path,
    params: Params | None = None,
    *,
    rngs: nnx.Rngs | None = None,
) -> nnx.bridge.ToNNX:
    """Wraps a model as an NNX module that holds its parameters.

    The module computes the same numbers, and has the methods of the Linen module: call
    it, or `encode`, `decode`, `init_cache` and `step` (`init_states` and `step` of an
    RNN). Its parameters are `nnx.Param`s under the names of the checkpoint, so
    `nnx.split`, `nnx.state`, `nnx.jit`, `nnx.grad` and `nnx.Optimizer` work as on any
    module.

    Args:
      model: a loaded model; the directory of a run, or of an averaged, imported or
        exported model, of which `load` takes the best checkpoint; or a `Transformer`
        or an RNN, with `params`.
      params: nested dict of float32 arrays, for a Linen module only.
      rngs: streams for dropout, such as `nnx.Rngs(dropout=0)`, kept in the module; None
        if `deterministic=False` is never passed, or always with `rngs`. Every call
        takes the next key of the stream, so masks are not those of a Linen module with
        the same seed.

    Returns:
      The module. It shares arrays with `model`, which does not change.

    Raises:
      UserError: the model is an ensemble, or a directory is not valid (see `load`).
      ValueError: `params` are not those of the Linen module.
      TypeError: `model` is something else, or a Linen module comes without `params`.

    Example:
      `net = t2t_jax.to_nnx("runs/phrasebook")`, `net(source, target_inputs)`.
    """
    linen, values = _linen(model, params)
    net = nnx.bridge.ToNNX(linen, rngs=rngs)
    for name, part in values.items():
        setattr(net, name, jax.tree.map(nnx.Param, part))
    return net


def from_nnx(net: nnx.bridge.ToNNX, model: TranslationModel) -> TranslationModel:
    """Returns a model with the parameters of an NNX module.

    Args:
      net: from `to_nnx`, and changed since, by training for instance; or merged from
        its state.
      model: whose vocabularies and search settings the new model gets; it does not
        change.

    Returns:
      A model that translates with the parameters of `net`, and that
      `t2t_jax.save_model` saves. Without a model, Linen's parameters are
      `nnx.to_pure_dict(nnx.state(net, nnx.Param))`.

    Raises:
      UserError: `model` is an ensemble, which `net` would replace in a part only.
      ValueError: the parameters are not those of such a model.
      TypeError: `net` is not a module from `to_nnx`.

    Example:
      `t2t_jax.from_nnx(net, model).translate(["The dog barks."])`.
    """
    if not isinstance(net, nnx.bridge.ToNNX):
        raise TypeError(
            f"from_nnx takes a module from to_nnx, not {with_article(net)}. Pass that "
            "part of your module."
        )
    _refuse_ensemble(model)
    params: Params = nnx.to_pure_dict(nnx.state(net, nnx.Param))
    require_params_of(model.module, params)
    return dataclasses.replace(model, params=params)


def _linen(model: object, params: Params | None) -> tuple[nn.Module, Params]:
    """Returns the Linen module and its parameters."""
    if isinstance(model, nn.Module) and params is not None:
        require_params_of(model, params)
        return model, params
    if isinstance(model, nn.Module) or params is not None:
        raise TypeError(
            "to_nnx takes a Linen module and its params, or neither. Pass both, such "
            'as module.init(…)["params"], or a loaded model alone.'
        )
    if isinstance(model, str | Path):
        model = load(model)
    if not isinstance(model, TranslationModel):
        kind = with_article(model)
        raise TypeError(f"to_nnx takes a model, not {kind}. Pass t2t_jax.load(…).")
    _refuse_ensemble(model)
    return model.module, model.params


def _refuse_ensemble(model: TranslationModel) -> None:
    if model.others:
        raise UserError(
            f"An ensemble of {1 + len(model.others)} models is not one NNX module. "
            "Pass one of its models."
        )
