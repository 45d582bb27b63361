"""Protocols of evaluation: the paper's search settings, and fingerprints."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable
from importlib import metadata
from typing import Any

import numpy as np

import t2t_jax
from t2t_jax.data.line_arguments import as_lines
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.types import Params

_PAPER: dict[str, Any] = {
    "beam_size": 4,
    "length_penalty": 0.6,
    "length_normalization": "paper",
    "beam_rule": "fixed",
    "max_extra_tokens": 50,
    "max_length_ratio": 0.0,
    "segment": "lines",
    "min_tokens": 0,
    "allow_unk": True,
    "constraint": "none",
    "n_best": 1,
    "mbr": "none",
    "shortlist": "",
    "sample": False,
}
_DEPENDENCIES = ("jax", "sacrebleu", "sacremoses", "sentencepiece")


def protocol_decoding(own: DecodingConfig) -> DecodingConfig:
    """Returns the paper's search settings within the limits of a run.

    Args:
      own: the run's settings. Its longest source is kept, and its size of a batch,
        unless a longer output needs more.

    Paper: §6.1.

    Example:
      >>> protocol_decoding(DecodingConfig(beam_size=1, length_penalty=0.0))
      DecodingConfig(beam_size=4, length_penalty=0.6, ..., max_extra_tokens=50, ...)
    """
    longest = own.max_source_length + _PAPER["max_extra_tokens"]
    tokens = max(own.tokens_per_batch, longest)
    return dataclasses.replace(own, **_PAPER, tokens_per_batch=tokens)


def overridden(asked: DecodingConfig, used: DecodingConfig) -> dict[str, Any]:
    """Lists the chosen search settings that the protocol overrides, by name.

    Example:
      >>> asked = DecodingConfig(beam_size=8)
      >>> overridden(asked, protocol_decoding(asked))
      {'beam_size': {'asked': 8, 'used': 4}}
    """
    default = DecodingConfig()
    return {
        name: {"asked": value, "used": getattr(used, name)}
        for name, value in dataclasses.asdict(asked).items()
        if value not in (getattr(used, name), getattr(default, name))
    }


def fingerprint_params(params: Params) -> str:
    """Hashes every leaf's path, dtype, shape and bytes with SHA-256, sorted by path.

    Example:
      >>> weights = {"b": np.zeros(3), "a": {"kernel": np.ones((2, 3))}}
      >>> same = {"a": {"kernel": np.ones((2, 3))}, "b": np.zeros(3)}
      >>> fingerprint_params(weights) == fingerprint_params(same)
      True
      >>> same["b"][0] = -0.0
      >>> fingerprint_params(weights) == fingerprint_params(same)
      False
    """
    from t2t_jax.devices.sharding.rules import leaves_by_path

    digest = hashlib.sha256()
    for path, leaf in leaves_by_path(params).items():  # JAX sorts names.
        array = np.asarray(leaf)
        # No part contains a NUL, so the encoding of trees is unambiguous.
        head = "\0".join([path, array.dtype.name, str(array.shape), ""])
        digest.update(head.encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def fingerprint_lines(lines: Iterable[str]) -> str:
    """Hashes text like `sha256sum` of a UTF-8 file with LF line ends.

    Compression, a byte order mark and CR LF do not change the fingerprint.

    Example:
      >>> fingerprint_lines(["Guten Tag."])[:8]
      'c3613a6f'
    """
    digest = hashlib.sha256()
    for line in as_lines(lines, caller="fingerprint_lines"):
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Returns the installed versions of everything that affects a score."""
    return {"t2t_jax": t2t_jax.__version__} | installed_versions(_DEPENDENCIES)


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Returns the versions of those packages that are installed."""
    installed = {d.metadata["Name"].lower() for d in metadata.distributions()}
    return {name: metadata.version(name) for name in names if name in installed}
