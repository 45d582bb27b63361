"""What is known of a model: where it comes from, and what it has scored."""

from __future__ import annotations

import hashlib
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import t2t_jax
from t2t_jax.files import read_json_object
from t2t_jax.inference.load import open_parameters
from t2t_jax.run.example_sentences import example_sentences
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.reporting.metrics_writer import read_metrics

SHA256SUMS = "SHA256SUMS"
"""Names all other files with their SHA-256, for `sha256sum --check`."""

# What a checkpoint says that is of use to whoever has no run any more.
_KEPT = (
    *("step", "kinds", "bleu", "averaged_steps", "unit", "gaps", "forced"),
    *("run", "data", "development", "examples"),
)
_SCORES = ("loss", "perplexity", "bleu", "bleu_signature", "chrf", "chrf_signature")
_VERSIONS_OF = ("jax", "flax", "numpy", "sentencepiece", "ctranslate2", "safetensors")
_LANGUAGE = re.compile(r"\.([a-z]{2,3}(?:[_-][A-Za-z]+)?)(?:\.gz)?$")
_CHUNK = 1 << 20


def provenance_of(workdir: Workdir, step: int) -> dict[str, Any]:
    """Collects where a model comes from; of an exported one, what that export knew.

    Args:
      workdir: a run or a model.

    Returns:
      JSON values: `step`, `kinds` (why it was saved), what it is the mean of, `run`,
      `data`, `development`, its scores on the development set, and `examples`,
      sentences that it can translate, where it has any.

    Raises:
      DataError: the checkpoint or `data.json` is damaged.
    """
    meta = open_parameters(workdir.path).meta(step)
    origin = {name: meta[name] for name in _KEPT if name in meta}
    if examples := example_sentences(workdir):
        origin["examples"] = list(examples)
    if workdir.is_model:
        return origin
    origin |= run_facts(workdir)
    if scores := _development(workdir.path / "metrics.jsonl", step):
        origin["development"] = scores
    return origin


def run_facts(workdir: Workdir) -> dict[str, Any]:
    """Collects what all models of a run have alike, however they are made of it.

    Returns:
      JSON values: `run`, its name, and `data`, where the run has written that down.

    Raises:
      DataError: `data.json` is damaged.
    """
    data = _data(workdir.path / "data.json")
    return {"run": workdir.path.resolve().name, **({"data": data} if data else {})}


def versions() -> dict[str, str]:
    """Returns the versions of what has made an export, where it is installed."""
    installed = {d.metadata["Name"].lower() for d in metadata.distributions()}
    found = {name: metadata.version(name) for name in _VERSIONS_OF if name in installed}
    python = platform.python_version()
    return {"t2t_jax": t2t_jax.__version__, "python": python, **found}


def languages_of(spec: str) -> tuple[str, str] | None:
    """Reads the languages off the name of a corpus, if it says them.

    Args:
      spec: as configured in `data.train`; of several corpora the first one counts.

    Example:
      >>> languages_of("text:data/train.en.gz,data/train.de.gz")
      ('en', 'de')
      >>> languages_of("2*tfds:wmt14_translate/de-en:train[:1%]:en-de++tsv:more.tsv")
      ('en', 'de')
      >>> languages_of("tsv:pairs.tsv")
    """
    first = re.sub(r"^[\d.]+\*", "", spec.split("++")[0])
    kind, _, rest = re.sub(r"\[[^\]]*\]", "", first).partition(":")
    if kind == "phrasebook":
        return "en", "de"
    if kind == "tfds":
        source, dash, target = rest.rpartition(":")[2].partition("-")
        return (source, target) if dash and ":" in rest else None
    sides = [_LANGUAGE.search(files.split("+")[0]) for files in rest.split(",")]
    if kind != "text" or len(sides) != 2:
        return None
    found = [side[1] for side in sides if side]
    # One ending of both names is none of a language.
    return (found[0], found[1]) if len(set(found)) == 2 else None


def write_sha256sums(directory: Path) -> None:
    """Writes the SHA-256 of every file of a directory into it.

    Args:
      directory: with all its files; those of its folders count as well.
    """
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    lines = [f"{_sha256(p)}  {p.relative_to(directory).as_posix()}\n" for p in paths]
    (directory / SHA256SUMS).write_text("".join(lines), encoding="utf-8")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _data(path: Path) -> dict[str, Any]:
    """Reads what text there was; its examples stay behind, for they are text."""
    try:
        told = read_json_object(path, advice="Bring it back from a copy, or remove it.")
    except FileNotFoundError:
        return {}
    return {
        name: {
            "spec": corpus.get("spec"),
            "fingerprint": corpus.get("fingerprint"),
            "pairs": corpus.get("counts", {}).get("kept"),
        }
        for name in ("train", "dev")
        if isinstance(corpus := told.get(name), dict)
    }


def _development(path: Path, step: int) -> dict[str, Any]:
    """Finds the evaluation of a step; the last, if there were several."""
    found: dict[str, Any] = {}
    for record in read_metrics(path):
        if (record["kind"], record["step"]) == ("eval", step):
            found = {name: record[name] for name in _SCORES if name in record}
            found["sentences"] = record.get("sentences")
    return found
