"""Models of Hugging Face's hub: `hf://ORGANIZATION/NAME`, from its cache or network."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from t2t_jax.errors import InputMissingError, UserError

SCHEME = "hf://"

_NAME = re.compile(r"hf://([\w-][\w.-]*/[\w-][\w.-]*)(?:@([\w-][\w./-]*))?")
_FILES = (
    *("*.json", "*.safetensors", "*.npz", "*.pt"),
    *("*.spm", "*.model", "*.yml", "*.txt", "*.codes", "*.subwords"),
)
# Fetched only if there is nothing else: many models have both.
_PICKLES = "pytorch_model.bin"


def resolve_hub(path: str) -> Path:
    """Returns the local directory of a model of the hub, and fetches it if need be.

    A directory of the cache is taken as it is where `HF_HUB_OFFLINE=1` is set, or the
    network is down.

    Args:
      path: `hf://ORGANIZATION/NAME`, or `hf://ORGANIZATION/NAME@REVISION`.

    Raises:
      InputMissingError: the hub does not have it, or is out of reach and the cache has
        not got it.
      UserError: the path is not of this form, or huggingface_hub is not installed.
    """
    match = _NAME.fullmatch(path)
    if match is None or ".." in path:
        raise UserError(
            f"{path} must be hf://ORGANIZATION/NAME or hf://ORGANIZATION/NAME@REVISION."
            " Change --from."
        )
    if find_spec("huggingface_hub") is None:
        raise UserError(
            f"{path} requires the package huggingface_hub, which is not installed. "
            "Run: pip install 't2t-jax[exchange]', or pass a directory."
        )
    name, revision = match.groups()
    directory = _fetch(name, revision, _FILES)
    known = ("*.safetensors", "*.npz", "*.pt")
    if not any(file for pattern in known for file in directory.glob(pattern)):
        directory = _fetch(name, revision, (*_FILES, _PICKLES))
    return directory


def _fetch(name: str, revision: str | None, patterns: tuple[str, ...]) -> Path:
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError

    try:
        found = huggingface_hub.snapshot_download(
            name, revision=revision, allow_patterns=list(patterns)
        )
    # HTTP errors and those of a cache are OSErrors; FileNotFoundError among them.
    except (HFValidationError, OSError) as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise InputMissingError(
            f"{SCHEME}{name} cannot be fetched: {reason}. Check the name, the network "
            "and HF_HUB_OFFLINE, or pass a directory."
        ) from error
    return Path(found)
