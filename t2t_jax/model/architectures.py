"""Builds the trainable models: the Transformer, and the baseline of Table 1.

Both take the same arguments and implement `StepModel`, so nothing above this file
depends on which it is.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
from collections.abc import Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax.sharding import Mesh

from t2t_jax.devices.processor import resolve_compute_dtype
from t2t_jax.devices.sharding.rules import describe_differences, dtype_shapes
from t2t_jax.errors import UserError
from t2t_jax.model.attention import MultiHeadAttention
from t2t_jax.model.attention_kernels import resolve_attention
from t2t_jax.model.config import (
    ModelConfig,
    RNNConfig,
    TransformerConfig,
    decoder_layers,
)
from t2t_jax.model.counting import count_parameters
from t2t_jax.model.embedding import Embedding
from t2t_jax.model.rnn.rnn import RNN, RNNStepModel
from t2t_jax.model.step_model import RecomputingStepModel, TransformerStepModel
from t2t_jax.model.transformer import EncoderDecoder, Transformer
from t2t_jax.types import Array, Params, PyTree, StepModel

# What a subclass may compute otherwise than the `step` that it inherits.
_COMPUTING = {"__call__", "decode", "keys_values", "setup"}


def make_module(
    config: ModelConfig,
    *,
    devices: Sequence[jax.Device] | None = None,
    mesh: Mapping[str, int] | None = None,
) -> nn.Module:
    """Builds the module of a configuration.

    Args:
      devices: which it is compiled for, present or not; they resolve `compute_dtype`
        and `attention`. None: no kernel for attention, and JAX's default device
        decides on the dtype, at tracing time.
      mesh: as for `attention_kernels.resolve_attention`.
    """
    platform = devices[0].platform if devices is not None else None
    if platform:
        dtype = resolve_compute_dtype(config.compute_dtype, platform)
        config = dataclasses.replace(config, compute_dtype=dtype)
    if not isinstance(config, TransformerConfig):
        return RNN(config)
    attention = config.attention if config.attention == "plain" else "auto"
    if platform:
        attention = resolve_attention(config, platform, devices=devices, mesh=mesh)[0]
    return Transformer(dataclasses.replace(config, attention=attention))


def resolve_module(module: nn.Module, mesh: Mesh, *, auto: str = "") -> nn.Module:
    """Replaces what is "auto" in a module's configuration by what a mesh has.

    The modules of `make_module` for devices, and those without such a configuration,
    stay as they are.

    Args:
      auto: what `compute_dtype` becomes; "" for that of the devices.
    """
    config = getattr(module, "config", None)
    if not isinstance(config, TransformerConfig | RNNConfig):
        return module
    devices = mesh.devices.flatten().tolist()
    platform = devices[0].platform
    dtype = resolve_compute_dtype(config.compute_dtype, platform)
    if config.compute_dtype == "auto":
        dtype = auto or dtype
    changes: Any = {"compute_dtype": dtype}
    if isinstance(config, TransformerConfig) and config.attention == "auto":
        choice = resolve_attention(config, platform, devices=devices, mesh=mesh.shape)
        changes["attention"] = choice.kernel
    return module.clone(config=dataclasses.replace(config, **changes))


def step_model(
    module: nn.Module, params: Params, *, compute_dtype: str = "auto"
) -> StepModel:
    """Binds a module to its parameters, as `beam_search` and `sample` take them.

    Args:
      module: a `Transformer` or the recurrent baseline, which search with a cache; or
        any module that is called as they are, which is run on all tokens at each step.
        So is a subclass of them that replaces `__call__`, `decode` or `setup`, unless
        it defines `step` too, or says `step = Transformer.step`; and one whose
        `attention` replaces `__call__`, `keys_values` or `setup`, but not both `step`
        and `attend_to_memory`, or is a function.
      params: nested dict of arrays, such as `state.params`.
      compute_dtype: "float32" or "bfloat16"; "auto" for that of the module.

    Returns:
      A pytree whose leaves are the parameters: a jitted search that takes it as an
      argument is compiled once for all checkpoints.

    Raises:
      TypeError: the module is not one of Flax Linen.
      UserError: the parameters are those of another model.

    Example:
      >>> import t2t_jax
      >>> module = Transformer(TransformerConfig(vocab_size=11, num_layers=1))
      >>> source_BxS = jnp.array([[5, 6, 7, 2], [8, 2, 0, 0]])  # eos 2, pad 0
      >>> params = module.init(jax.random.key(0), source_BxS, source_BxS)["params"]
      >>> search = jax.jit(t2t_jax.beam_search, static_argnames="params")
      >>> found = search(step_model(module, params), source_BxS)
      >>> found.tokens_BxWxT.shape[:2]
      (2, 1)
    """
    check_params(module, params)
    if isinstance(module, EncoderDecoder) and compute_dtype != "auto":
        config = dataclasses.replace(module.config, compute_dtype=compute_dtype)
        module = module.clone(config=config)
    attention = getattr(module, "attention", MultiHeadAttention)
    of_attention = (attention, MultiHeadAttention, {"step", "attend_to_memory"})
    for base, bound in (Transformer, TransformerStepModel), (RNN, RNNStepModel):
        parts = (type(module), base, {"step"}), of_attention
        if isinstance(module, base) and all(starmap(_steps_as_it_computes, parts)):
            return bound(module, params)
    if isinstance(module, nn.Module):
        return RecomputingStepModel(module, params)
    raise TypeError(
        f"module must be one of Flax Linen, not {type(module).__name__}. Pass "
        "beam_search a StepModel of your own, a class with its five methods."
    )


def param_shapes(module: nn.Module) -> Params:
    """Returns the shapes of a module's parameters; tracing it takes seconds."""
    if isinstance(module, EncoderDecoder):  # Else the loss, of other targets.
        module = module.clone(head=Embedding.logits)

    def init() -> Params:
        token = jnp.ones((1, 1), jnp.int32)
        return module.init(jax.random.key(0), token, token)["params"]

    return jax.eval_shape(init)


def require_params_of(module: nn.Module, params: Params) -> None:
    """Checks names, types and shapes of parameters against their module.

    Raises:
      UserError: arrays differ, are missing, or are too many.
    """
    expected = dtype_shapes(param_shapes(module))
    if reason := describe_differences(expected, dtype_shapes(params)):
        raise UserError(
            f"The parameters are not those of this {type(module).__name__}: {reason}. "
            "Pass those of a module with the same configuration."
        )


def check_params(module: nn.Module, params: Params) -> None:
    """Checks parameters as `require_params_of` does, if their number is another one."""
    if isinstance(module, EncoderDecoder):
        size = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params))
        if size != count_parameters(module.config).total:
            require_params_of(module, params)


def has_head(module: nn.Module) -> bool:
    """Returns whether what another `head` returns is what a module would return.

    So it is of both models, but for subclasses that do more with the logits, and where
    the logits are those of a `head` of one's own.
    """
    if not isinstance(module, EncoderDecoder) or module.head is not Embedding.logits:
        return False
    return not _replaced(type(module), EncoderDecoder) & {"__call__", "decode"}


def _steps_as_it_computes(kind: Any, base: type, steps: set[str]) -> bool:
    """Returns whether the `steps` of what makes a block are those of its formulas."""
    replaced = _replaced(kind, base)
    return steps <= replaced or not replaced & _COMPUTING


def _replaced(kind: Any, base: type) -> set[str]:
    """Returns the names that a subclass defines, and all of another class.

    Of a `functools.partial` they are those of its class, of another function all that
    compute.
    """
    kind = kind.func if isinstance(kind, functools.partial) else kind
    if not isinstance(kind, type):
        return _COMPUTING
    classes = kind.__mro__
    first = classes.index(base) if base in classes else len(classes)
    return {name for one in classes[:first] for name in vars(one)}


def qualified_name(value: object) -> str:
    """Names a class or a function by its module, which of a script is its file.

    Example:
      >>> qualified_name(Transformer)
      't2t_jax.model.transformer.Transformer'
    """
    where = str(value.__module__)
    if where == "__main__":
        where = Path(getattr(sys.modules[where], "__file__", None) or where).stem
    return f"{where}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def module_name(module: nn.Module) -> str:
    """Names the class of a module, and its attributes.

    Those are plain values, and classes and functions that are not the default.

    Example:
      >>> module_name(Transformer(TransformerConfig(), cutoff=0.5))
      't2t_jax.model.transformer.Transformer(cutoff=0.5)'
    """
    shown = []
    for field in dataclasses.fields(module):
        value = getattr(module, field.name)
        if isinstance(value, bool | int | float | str) and field.name != "name":
            shown.append(f"{field.name}={value!r}")
        elif callable(value) and value is not field.default and field.name != "parent":
            shown.append(f"{field.name}={qualified_name(value)}")
    return f"{qualified_name(type(module))}({', '.join(shown)})"


def sown_weights(
    module: nn.Module, variables: PyTree, source_BxS: Array, target_inputs_BxT: Array
) -> Any:
    """Returns what the attentions sow into "intermediates" in a teacher-forced pass.

    Sown values are tuples, since a module may be called more than once.

    Raises:
      UserError: they sow nothing.
    """
    _, collections = module.apply(
        variables, source_BxS, target_inputs_BxT, mutable=["intermediates"]
    )
    if "intermediates" not in collections:
        raise UserError(
            f"{type(module).__name__}: its attention sows no weights. Call "
            'self.sow("intermediates", "weights", weights_BxHxQxK) in it.'
        )
    return collections["intermediates"]


@dataclasses.dataclass(frozen=True)
class AlignmentExtractor:
    """Extracts one layer's cross-attention weights in a teacher-forced pass.

    Attributes:
      layer: of the decoder, from 0; negative numbers count from the last. A recurrent
        model has one layer with attention, 0.

    Raises:
      UserError: the layer does not exist.
    """

    module: nn.Module
    layer: int = -1

    def __post_init__(self) -> None:
        if not isinstance(self.module, EncoderDecoder):
            raise UserError(
                f"Attention weights are those of a Transformer, and a "
                f"{type(self.module).__name__} has none that are known. Leave them out."
            )
        layers = _num_layers(self.module)
        if not -layers <= self.layer < layers:
            raise UserError(
                f"decoding.attention_layer={self.layer} must be one of the "
                f"{layers} layers of the decoder that attend to the source, from 0, or "
                "from -1 backwards. Change config.decoding.attention_layer."
            )

    def __call__(
        self, variables: PyTree, source_BxS: Array, target_inputs_BxT: Array
    ) -> jax.Array:
        """Computes the weights; row t belongs to the token that position t predicts.

        Args:
          source_BxS: [B, S] tokens; pad = 0.
          target_inputs_BxT: [B, T] tokens, bos first.

        Returns:
          [B, T, S] float32, the mean over the heads; a row sums to 1, or to 0 at pad.
        """
        sown = sown_weights(self.module, variables, source_BxS, target_inputs_BxT)
        sown = sown["decoder"]
        if isinstance(self.module, RNN):
            return jnp.asarray(sown["weights"][0], jnp.float32)
        layer = self.layer % _num_layers(self.module)
        weights_BxHxTxS = sown[f"layer_{layer}"]["cross_attention"]["weights"][0]
        return jnp.mean(jnp.asarray(weights_BxHxTxS, jnp.float32), axis=1)


def _num_layers(module: nn.Module) -> int:
    return decoder_layers(module.config) if isinstance(module, Transformer) else 1
