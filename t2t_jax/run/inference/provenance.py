"""The provenance of a model: its run, text, scores and package versions."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import t2t_jax
from t2t_jax.checkpointing.safetensors_io import open_parameters
from t2t_jax.data.source_lines import KEY as SOURCE_LINES
from t2t_jax.data.source_lines import SourceLines
from t2t_jax.evaluation.protocol import installed_versions
from t2t_jax.files import read_json_object, sha256_of
from t2t_jax.run.first_start import BEGAN_WITH, imported_origin
from t2t_jax.run.text import example_sentences
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.reporting.metrics_writer import read_metrics

SHA256SUMS = "SHA256SUMS"
"""The file with the SHA-256 of all other files, for `sha256sum --check`."""

# The keys of a checkpoint that remain useful without its run.
_META_KEYS = (
    *("step", "kinds", "bleu", "averaged_steps", "unit", "gaps", "forced"),
    *("run", "data", "development", "examples", "imported", SOURCE_LINES, BEGAN_WITH),
)
# What was measured of, or selected, the parameters before they were changed.
_FORMER = ("bleu", "development", "averaged_steps", "unit", "gaps", "forced")
CHANGES = {"changed": "changed in JAX", "extended": "extended by a language"}
"""What was done to a model after training, by the `kinds` of its origin."""
_SCORES = ("loss", "perplexity", "bleu", "bleu_signature", "chrf", "chrf_signature")
_PACKAGES = ("jax", "flax", "numpy", "sentencepiece", "ctranslate2", "safetensors")


def provenance_of(workdir: Workdir, step: int) -> dict[str, Any]:
    """Collects the provenance of a checkpoint of a run or model.

    Returns:
      JSON values, if known: `step`, `kinds` (why it was saved), `averaged_steps` and
      their spacing, `run`, `data`, `development` (scores on the development set) and
      `examples` (source sentences), and of an imported model `imported`, of one that
      was trained from it `began_with`. Those of a model come from its model.json.

    Raises:
      DataError: the checkpoint or `data.json` is damaged.
    """
    meta = open_parameters(workdir.path).meta(step)
    origin = {name: meta[name] for name in _META_KEYS if name in meta}
    if workdir.is_model:
        return origin
    scores = _dev_scores(workdir.path / "metrics.jsonl", step)
    return origin | run_facts(workdir) | ({"development": scores} if scores else {})


def changed_origin(origin: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Returns the origin of a model of which one of `CHANGES` was made."""
    kept = {name: value for name, value in origin.items() if name not in _FORMER}
    earlier = [one for one in origin.get("kinds", ()) if one in CHANGES]
    return {**kept, "kinds": [*dict.fromkeys([*earlier, kind])]}


def run_facts(workdir: Workdir) -> dict[str, Any]:
    """Collects what all models of a run share: its name and text, as JSON values.

    Those of the text are `data`, `examples` and, except for older runs, `source_lines`.
    Of a run that began with an imported model, `began_with` has its licence.

    Raises:
      DataError: `data.json` is damaged.
    """
    lines = SourceLines.load(workdir.path)
    facts = {
        "run": workdir.path.resolve().name,
        "data": _read_data(workdir.path / "data.json"),
        SOURCE_LINES: lines and lines.to_json(),
        "examples": list(example_sentences(workdir)),
        BEGAN_WITH: imported_origin(workdir),
    }
    return {name: value for name, value in facts.items() if value}


def versions() -> dict[str, str]:
    """Returns the versions of t2t_jax, Python and the installed packages it uses."""
    own = {"t2t_jax": t2t_jax.__version__, "python": platform.python_version()}
    return own | installed_versions(_PACKAGES)


def write_sha256sums(directory: Path) -> None:
    """Writes `SHA256SUMS` of all files of a directory and its subdirectories."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    lines = [f"{sha256_of(p)}  {p.relative_to(directory).as_posix()}\n" for p in paths]
    (directory / SHA256SUMS).write_text("".join(lines), encoding="utf-8")


def _read_data(path: Path) -> dict[str, Any]:
    """Reads data.json, without the example sentences, which are training text."""
    try:
        data = read_json_object(path, advice="Restore it from a copy, or remove it.")
    except FileNotFoundError:
        return {}
    return {
        name: {
            "spec": corpus.get("spec"),
            "fingerprint": corpus.get("fingerprint"),
            "pairs": corpus.get("counts", {}).get("kept"),
        }
        for name in ("train", "dev")
        if isinstance(corpus := data.get(name), dict)
    }


def _dev_scores(path: Path, step: int) -> dict[str, Any]:
    """Returns the scores of the last evaluation of a step."""
    scores: dict[str, Any] = {}
    for record in read_metrics(path):
        if (record["kind"], record["step"]) == ("eval", step):
            scores = {name: record[name] for name in _SCORES if name in record}
            scores["sentences"] = record.get("sentences")
    return scores
