"""Imports a model of another toolkit as an ordinary model directory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from t2t_jax.config import Config, defaults, parse, set_keys
from t2t_jax.data.files.lines import require_files
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import (
    ConfigError,
    DataError,
    InputMissingError,
    UserError,
    require_package,
    short_repr,
)
from t2t_jax.exchange.cards import fill_template
from t2t_jax.exchange.formats import POSITIONS
from t2t_jax.exchange.importing.fairseq import is_fairseq, read_fairseq
from t2t_jax.exchange.importing.hf_marian import is_hf_marian, read_hf_marian
from t2t_jax.exchange.importing.imported import DEFAULTS, ImportedModel, ImportOptions
from t2t_jax.exchange.importing.m2m_100 import is_m2m_100, read_m2m_100
from t2t_jax.exchange.importing.marian import is_marian, read_marian
from t2t_jax.exchange.importing.tensor2tensor import is_t2t, read_t2t
from t2t_jax.files import sha256_of
from t2t_jax.model.architectures import make_module, require_params_of
from t2t_jax.model.counting import count_parameters
from t2t_jax.run.description.departures import departures
from t2t_jax.run.inference.load import load
from t2t_jax.run.inference.model import TranslationModel
from t2t_jax.run.inference.model_dir import (
    atomic_directory,
    check_new_dir,
    save_model_dir,
)
from t2t_jax.run.inference.provenance import SHA256SUMS, versions, write_sha256sums
from t2t_jax.run.workdir import Workdir


class Format(NamedTuple):
    """How models of a toolkit are recognized and read.

    Attributes:
      matches: whether a path is such a model, by names and first bytes.
      options: names of the `ImportOptions` that `read` takes.
    """

    toolkit: str
    matches: Callable[[Path], bool]
    read: Callable[[Path, ImportOptions], ImportedModel]
    options: tuple[str, ...]


FORMATS: Mapping[str, Format] = {
    "marian": Format("Marian", is_marian, read_marian, ("vocabularies", "positions")),
    # Before the format of other directories of Hugging Face.
    "m2m_100": Format("Hugging Face", is_m2m_100, read_m2m_100, ()),
    "hf_marian": Format(
        "Hugging Face", is_hf_marian, read_hf_marian, ("positions", "normalize")
    ),
    "fairseq": Format("fairseq", is_fairseq, read_fairseq, ("vocabularies",)),
    "t2t": Format("tensor2tensor", is_t2t, read_t2t, ("vocabularies",)),
}
"""By the names of `--format`."""


def find_format(path: Path) -> str | None:
    """Returns the format of a foreign model, or None."""
    return next((name for name, known in FORMATS.items() if known.matches(path)), None)


def explain_foreign(path: Path) -> str:
    """Returns what to do with a foreign model that is passed as one of ours, or ""."""
    if (name := find_format(path)) is None:
        return ""
    return (
        f"It is a model of {FORMATS[name].toolkit}. Import it with --mode=import "
        f"--from={path} --to=DIR, and pass that directory."
    )


def import_model(
    path: str | Path,
    to: str | Path,
    *,
    toolkit: str = "",
    options: ImportOptions = DEFAULTS,
) -> TranslationModel:
    """Imports a model of another toolkit, and loads it.

    Args:
      path: of the model, a file or a directory; or `hf://ORGANIZATION/NAME`.
      to: directory to create, of a model that every mode and `load` take.
      toolkit: one of `formats.IMPORT_FORMATS`, such as "fairseq"; "" for what the
        files are.
      options: vocabularies that do not lie beside the model, and such choices.

    Returns:
      The model, as `load(to)` returns it.

    Raises:
      DataError: the files are damaged, incomplete or of an unsupported model.
      InputMissingError: the path does not exist.
      OutputError: the directory is not empty, or cannot be created.
      UserError: the toolkit is not known, an option is not one of the toolkit's, or a
        package is not installed.

    Example:
      `model = t2t_jax.import_model("opus-mt-en-de", to="models/en-de")`
    """
    write_imported(path, Path(to), toolkit=toolkit, options=options)
    return load(to)


def write_imported(
    path: str | Path, to: Path, *, toolkit: str, options: ImportOptions
) -> Config:
    """Writes the model directory of a foreign model, complete or not at all.

    Returns:
      The configuration of the model.

    Raises:
      UserError: as `import_model` does.
    """
    path = resolve_hub(str(path)) if str(path).startswith(SCHEME) else Path(path)
    check_new_dir(Workdir(path), to)
    name = _format_of(path, toolkit)
    _check_options(options, name)
    imported = FORMATS[name].read(path, options)
    config = _config_of(imported, path)
    model = _model_of(imported, config, path)
    sums = {path: sha256_of(path) for path in imported.files}
    known = {
        "format": name,
        "files": {path.name: digest for path, digest in sums.items()},
        "languages": imported.languages,
        "license": imported.license,
    }
    described = {key: value for key, value in known.items() if value}
    origin = {"step": 0, "kinds": ["imported"], "imported": described}
    with atomic_directory(to) as directory:
        save_model_dir(directory, model, config=config, origin=origin)
        about = {"name": to.resolve().name, "toolkit": FORMATS[name].toolkit}
        card = _card(imported, config, **about, sums=sums)
        (directory / "README.md").write_bytes(card.encode(errors="backslashreplace"))
        write_sha256sums(directory)
    return config


def _format_of(path: Path, toolkit: str) -> str:
    """Returns the name of a model's format: `toolkit`, or "" for what the files are."""
    found = find_format(path)
    # A checkpoint of TensorFlow is several files, named by how they begin.
    if not path.exists() and found is None:
        raise InputMissingError(f"{path}: no such file or directory. Change --from.")
    if (name := toolkit or found or "") not in FORMATS:
        others = " CTranslate2's are only exported." * (path / "model.bin").is_file()
        raise UserError(
            f"{path} is not a model of {', '.join(FORMATS)}, by its files.{others} "
            "Pass the directory of a model, or its --format."
        )
    return name


def _check_options(options: ImportOptions, name: str) -> None:
    """Checks that a format takes the options that are set."""
    for option, value in options._asdict().items():
        if value and option not in FORMATS[name].options:
            takers = [one.toolkit for one in FORMATS.values() if option in one.options]
            raise UserError(
                f"--{option} is only for models of {', '.join(takers)}, and this is "
                f"one of {FORMATS[name].toolkit}. Leave it out."
            )
    require_files(*options.vocabularies, change="--vocabularies")
    if options.positions not in ("", *POSITIONS):
        raise UserError(
            f"positions={short_repr(options.positions)} must be "
            f"{' or '.join(map(repr, POSITIONS))}. Change --positions, or leave it out."
        )


def _config_of(imported: ImportedModel, path: Path) -> Config:
    values = {**defaults(), **imported.config}
    longest = sum(
        values[f"decoding.{one}"] for one in ("max_source_length", "max_extra_tokens")
    )
    tokens = max(DecodingConfig.tokens_per_batch, longest)
    given = {"decoding.tokens_per_batch": tokens, **imported.config}
    try:
        return parse(set_keys({}, given))
    except ConfigError as error:
        problems = [f"{path}: {problem}" for problem in error.problems]
        raise DataError([*problems, "Such models are not supported."]) from error


def _model_of(imported: ImportedModel, config: Config, path: Path) -> TranslationModel:
    """Checks that parameters and vocabularies are those of the configuration."""
    module, params = make_module(config.network), imported.params
    try:
        require_params_of(module, params)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    own, advice = imported.vocabularies, "Pass its own."
    own.check(config.vocabulary, name=str(path), advice=advice)
    return TranslationModel(module, params, own, config.decoding, step=0)


def _card(imported: ImportedModel, config: Config, **about: object) -> str:
    """Fills `import_card.md`.

    Args:
      about: `name` of the directory, `toolkit`, and `sums` of the files.
    """
    vocabulary = imported.vocabularies.source
    sides = ("source_language", "target_language")
    needed = zip(sides, vocabulary.tags, strict=False)
    return fill_template(
        "import_card",
        options=dict(needed) if vocabulary.reads_source else {},
        imported=imported,
        parameters=count_parameters(config.network).total,
        departures=departures(config),
        usual=defaults(),
        versions=versions(),
        sha256sums=SHA256SUMS,
        **about,
    )


SCHEME = "hf://"

_NAME = re.compile(r"hf://([\w-][\w.-]*/[\w-][\w.-]*)(?:@([\w-][\w./-]*))?")
_FILES = (
    *("*.json", "*.safetensors", "*.npz", "*.pt"),
    *("*.spm", "*.model", "*.yml", "*.txt", "*.codes", "*.subwords"),
    *("bpecodes", "code", "codes"),
    "training_args.bin",  # says who trained it
)
_IGNORED = ["*/*", "optimizer.pt", "scaler.pt", "scheduler.pt"]
# Fetched only if there is nothing else: many models have both.
_PICKLES = "pytorch_model*.bin"


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
    if (match := _NAME.fullmatch(path)) is None or ".." in path:
        raise UserError(
            f"{path} must be hf://ORGANIZATION/NAME[@REVISION]. Change --from."
        )
    user = f"{path}, unlike a directory,"
    require_package("huggingface_hub", user=user, extra="exchange")
    name, revision = match.groups()
    directory = _fetch(name, revision, _FILES)
    known = (".safetensors", ".npz", ".pt")
    if not any(file.suffix in known for file in directory.glob("*")):
        directory = _fetch(name, revision, (*_FILES, _PICKLES))
    return directory


def _fetch(name: str, revision: str | None, patterns: tuple[str, ...]) -> Path:
    import huggingface_hub

    try:
        found = huggingface_hub.snapshot_download(
            name,
            revision=revision,
            allow_patterns=list(patterns),
            ignore_patterns=_IGNORED,
        )
    except (ImportError, MemoryError, TypeError):  # no fault of the network
        raise
    except Exception as error:  # Its own, a cache's, or its HTTP client's, by version.
        text = str(error) or type(error).__name__
        reason = " ".join(text.split())[:300].rstrip(".")
        raise InputMissingError(
            f"{SCHEME}{name} cannot be fetched: {reason}. Check the name, the network "
            "and HF_HUB_OFFLINE, or pass a directory."
        ) from error
    return Path(found)
