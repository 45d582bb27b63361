"""Writes the model card, the README.md of an exported model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from t2t_jax.data.corpora.open import train_and_dev
from t2t_jax.errors import DataError
from t2t_jax.exchange.exporting.base import (
    ExportFormat,
    Original,
    divisor,
    fill_template,
)
from t2t_jax.exchange.exporting.hub_metadata import hub_metadata
from t2t_jax.exchange.exporting.verification import TIE, Comparison
from t2t_jax.files import read_json_object
from t2t_jax.inference.provenance import SHA256SUMS
from t2t_jax.model.architectures import count_parameters
from t2t_jax.model.config import ModelConfig, TransformerConfig
from t2t_jax.run.text_paths import spec_of_names

_DEVELOPMENT = (
    ("bleu", "BLEU", "bleu_signature"),
    ("chrf", "chrF", "chrf_signature"),
    ("perplexity", "perplexity (not smoothed)", ""),
)

_NOT_OF_THE_PAPER = (
    *("num_decoder_layers", "activation", "attention_biases", "output_bias"),
    *("scale_embeddings", "position_rates", "first_position", "start"),
)
"""Keys that are listed where they are not the default."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelCardFacts:
    """The content of a model card.

    Attributes:
      name: of the directory.
      params_sha256: of the parameters in float32, before quantization.
      vocabulary_sha256: of the vocabulary, or of both.
    """

    name: str
    format: ExportFormat
    original: Original
    comparison: Comparison
    quantization: str
    max_bleu_loss: float
    params_sha256: str
    vocabulary_sha256: str
    versions: Mapping[str, str]


def model_card(facts: ModelCardFacts) -> str:
    """Fills `model_card.md` with the facts."""
    original, checked = facts.original, facts.comparison
    is_paper = original.config.architecture == "transformer"
    languages = original.languages
    card = fill_template(
        "model_card",
        facts=facts,
        metadata=hub_metadata(
            facts.name,
            facts.format,
            original,
            checked,
            quantization=facts.quantization,
        ),
        checked=checked,
        penalty=_penalty(facts),
        languages=f" from {languages[0]} to {languages[1]}" if languages else "",
        kind="a Transformer" if is_paper else "an LSTM with attention",
        made=_made(original.origin),
        use=facts.format.usage(original, name=facts.name),
        model=_table(_model(facts)),
        training=_table(_training(original)),
        scores=_scores(original.origin, facts.quantization),
        tie=TIE,
        signature=_escape(checked.bleu_signature),
        sha256sums=SHA256SUMS,
    )
    return f"{card}\n"


def _penalty(facts: ModelCardFacts) -> str:
    if not facts.comparison.length_penalty:
        return ""
    own = divisor(facts.original.config.decoding)
    differs = not facts.comparison.same_penalty
    return f", the exponent of {own}" + ", in CTranslate2 of n" * differs


def _made(origin: Mapping[str, Any]) -> str:
    changed = ", then changed in JAX" * ("changed" in origin.get("kinds", ()))
    if "imported" in origin:
        return f"imported into t2t_jax as {origin['imported']['format']}{changed}"
    return f"trained with t2t_jax, step {origin['step']:,}{changed}"


def _model(facts: ModelCardFacts) -> Iterable[tuple[str, object]]:
    config = facts.original.config
    network: ModelConfig = config.network
    names = ["num_layers", "d_model", "tying"]
    if isinstance(network, TransformerConfig):
        names[2:] = ["d_ff", "num_heads", "d_k", "d_v", "norm_position", "positions"]
        names += ["tying", "layer_norm_epsilon"]
        names += [
            name
            for name in _NOT_OF_THE_PAPER
            if getattr(network, name) != getattr(TransformerConfig, name)
        ]
    yield "architecture", config.architecture
    for name in names:
        yield f"`{name}`", getattr(network, name)
    yield "parameters", f"{count_parameters(network).total:,}"
    yield "written as", facts.quantization
    yield "SHA-256 of the parameters", f"`{facts.params_sha256}`"
    subwords = f"{config.vocabulary.size:,}"
    if config.vocabulary.source_size:
        subwords += f" (source: {config.vocabulary.source_size:,})"
    table = facts.original.model.vocabularies.target.model.startswith(b"{")
    kind = "of another toolkit" if table else "SentencePiece, BPE"
    yield f"subwords ({kind})", subwords
    yield "SHA-256 of the vocabulary", f"`{facts.vocabulary_sha256}`"
    yield "made with", ", ".join(" ".join(pair) for pair in facts.versions.items())


def _training(original: Original) -> Iterable[tuple[str, object]]:
    config, origin = original.config, original.origin
    if "imported" in origin:
        for name, digest in origin["imported"]["files"].items():
            yield f"of the file {name}, SHA-256", f"`{digest}`"
        return
    yield "run", origin.get("run", "unknown")
    if config.init_from:
        name = Path(config.init_from).name
        yield "began with", f"`{name}`{_imported_as(config.init_from)}"
    yield "step", f"{origin['step']:,} of {config.steps:,}"
    if averaged := origin.get("averaged_steps"):
        yield "mean of the steps", ", ".join(f"{step:,}" for step in averaged)
    for name, corpus in origin.get("data", {}).items():
        pairs = corpus.get("pairs")
        size = f"{pairs:,} pairs" if isinstance(pairs, int) else "pairs not counted"
        yield f"{name} text", f"`{corpus.get('spec')}`, {size}"
        yield f"{name} text, fingerprint", f"`{corpus.get('fingerprint')}`"
    if "data" not in origin:
        yield "train text", f"`{spec_of_names(train_and_dev(config.data)[0])}`"
    yield "tokens of a batch, each side", f"{config.data.tokens_per_batch:,}"
    yield "label smoothing", config.training.label_smoothing
    yield "dropout", config.network.dropout


def _imported_as(directory: str) -> str:
    """Returns the format that the model of a directory was imported from, or ""."""
    try:
        origin = read_json_object(Path(directory) / "model.json", advice="")
    except (OSError, DataError):  # Not an imported model, or no longer there.
        return ""
    imported = origin.get("imported")
    if not isinstance(imported, dict) or "format" not in imported:
        return ""
    return f", imported as {imported['format']}"


def _scores(origin: Mapping[str, Any], quantization: str) -> str:
    scores = origin.get("development")
    if "imported" in origin:
        return "Those of the imported model are not known."
    if not scores:
        return "These parameters were not evaluated during training."
    rows = [
        (title, f"{value:.2f} `{scores.get(signature, '')}`".replace(" ``", ""))
        for name, title, signature in _DEVELOPMENT
        if isinstance(value := scores.get(name), int | float)
    ]
    search = (
        ", with the search settings of the run "
        f"({scores.get('sentences')} sentences for BLEU and chrF)"
    )
    exact = quantization == "float32"
    which = "" if exact else f" of the run's model, in float32, not of {quantization}"
    return (
        f"On the development text{search if 'bleu' in scores else ''}{which}. Nothing "
        f"else was measured.\n\n{_table(rows)}"
    )


def _table(rows: Iterable[tuple[str, object]]) -> str:
    lines = (f"| {name} | {_escape(str(value))} |" for name, value in rows)
    return "\n".join(["| | |", "|---|---|", *lines])


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|")
