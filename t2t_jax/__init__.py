"""Attention Is All You Need, in JAX: train, evaluate and run translation Transformers.

The public names are imported when they are first used, so that `import t2t_jax`
costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2t_jax.decoding.beam_search import beam_search as beam_search
    from t2t_jax.decoding.sampling import sample as sample
    from t2t_jax.loading import load as load
    from t2t_jax.loading import translate as translate
    from t2t_jax.model.config import TransformerConfig as TransformerConfig
    from t2t_jax.model.transformer import Transformer as Transformer

__version__ = "0.1.0"

_HOME = {
    "Transformer": "t2t_jax.model.transformer",
    "TransformerConfig": "t2t_jax.model.config",
    "beam_search": "t2t_jax.decoding.beam_search",
    "load": "t2t_jax.loading",
    "sample": "t2t_jax.decoding.sampling",
    "translate": "t2t_jax.loading",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 't2t_jax' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
