"""Writes the model card, the README.md of an exported model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from t2t_jax.config import Config
from t2t_jax.data.corpora.open import train_and_dev
from t2t_jax.exporting.ctranslate2 import exported_positions
from t2t_jax.exporting.verification import TIE, Comparison
from t2t_jax.inference.provenance import SHA256SUMS, languages_of
from t2t_jax.model.architectures import count_parameters
from t2t_jax.model.config import ModelConfig, TransformerConfig

_DEVELOPMENT = (
    ("bleu", "BLEU", "bleu_signature"),
    ("chrf", "chrF", "chrf_signature"),
    ("perplexity", "perplexity (not smoothed)", ""),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelCardFacts:
    """The content of a model card.

    Attributes:
      format: model_dir, safetensors or ctranslate2.
      origin: from `provenance.provenance_of`.
      suppressed: pieces that are never generated, pad and bos.
      params_sha256: of the parameters in float32, before quantization.
      vocabulary_sha256: of the vocabulary, or of both.
    """

    name: str
    format: str
    config: Config
    origin: Mapping[str, Any]
    comparison: Comparison
    quantization: str
    max_bleu_loss: float
    suppressed: Sequence[str]
    params_sha256: str
    vocabulary_sha256: str
    versions: Mapping[str, str]


def model_card(facts: ModelCardFacts) -> str:
    """Fills `model_card.md` with the facts."""
    config, checked = facts.config, facts.comparison
    languages = languages_of(config.data.train)
    is_paper = config.architecture == "transformer"
    card = _template("model_card").format(
        facts=facts,
        checked=checked,
        languages=f" from {languages[0]} to {languages[1]}" if languages else "",
        kind="a Transformer" if is_paper else "an LSTM with attention",
        use=_use(facts),
        model=_table(_model(facts)),
        training=_table(_training(facts)),
        scores=_scores(facts.origin),
        other="CTranslate2" if facts.format == "ctranslate2" else "this directory",
        tie=TIE,
        signature=_escape(checked.bleu_signature),
        sha256sums=SHA256SUMS,
    )
    return f"{card}\n"


def _template(name: str) -> str:
    file = resources.files("t2t_jax.exporting") / f"{name}.md"
    return file.read_text("utf-8").rstrip()


def _use(facts: ModelCardFacts) -> str:
    # A JSON string is also a Python string.
    sentence = json.dumps(facts.origin["examples"][0], ensure_ascii=False)
    suppressed = [[piece] for piece in facts.suppressed]
    has_own_source = facts.config.vocabulary.source_size
    use = "use_ctranslate2" if facts.format == "ctranslate2" else "use_t2t_jax"
    return _template(use).format(
        facts=facts,
        sentence=sentence,
        suppressed=json.dumps(suppressed, ensure_ascii=False),
        positions=exported_positions(facts.config),
        max_extra_tokens=facts.config.decoding.max_extra_tokens,
        source="vocab_source" if has_own_source else "vocab",
        extra=", with the extra `export`" if facts.format == "safetensors" else "",
    )


def _model(facts: ModelCardFacts) -> Iterable[tuple[str, object]]:
    config = facts.config
    network: ModelConfig = config.network
    names = ["num_layers", "d_model", "tying"]
    if isinstance(network, TransformerConfig):
        names[2:] = ["d_ff", "num_heads", "d_k", "d_v", "norm_position", "positions"]
        names += ["tying", "layer_norm_epsilon"]
    yield "architecture", config.architecture
    for name in names:
        yield f"`{name}`", getattr(network, name)
    yield "parameters", f"{count_parameters(network).total:,}"
    yield "written as", facts.quantization
    yield "SHA-256 of the parameters", f"`{facts.params_sha256}`"
    subwords = f"{config.vocabulary.size:,}"
    if config.vocabulary.source_size:
        subwords += f" (source: {config.vocabulary.source_size:,})"
    yield "subwords (SentencePiece, BPE)", subwords
    yield "SHA-256 of the vocabulary", f"`{facts.vocabulary_sha256}`"
    yield "made with", ", ".join(" ".join(pair) for pair in facts.versions.items())


def _training(facts: ModelCardFacts) -> Iterable[tuple[str, object]]:
    config, origin = facts.config, facts.origin
    yield "run", origin.get("run", "unknown")
    yield "step", f"{origin['step']:,} of {config.steps:,}"
    if averaged := origin.get("averaged_steps"):
        yield "mean of the steps", ", ".join(f"{step:,}" for step in averaged)
    for name, corpus in origin.get("data", {}).items():
        pairs = corpus.get("pairs")
        size = f"{pairs:,} pairs" if isinstance(pairs, int) else "pairs not counted"
        yield f"{name} text", f"`{corpus.get('spec')}`, {size}"
        yield f"{name} text, fingerprint", f"`{corpus.get('fingerprint')}`"
    if "data" not in origin:
        yield "train text", f"`{train_and_dev(config.data)[0]}`"
    yield "tokens of a batch, each side", f"{config.data.tokens_per_batch:,}"
    yield "label smoothing", config.training.label_smoothing
    yield "dropout", config.network.dropout


def _scores(origin: Mapping[str, Any]) -> str:
    scores = origin.get("development")
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
    return (
        f"On the development text{search if 'bleu' in scores else ''}. Nothing else "
        f"was measured.\n\n{_table(rows)}"
    )


def _table(rows: Iterable[tuple[str, object]]) -> str:
    lines = (f"| {name} | {_escape(str(value))} |" for name, value in rows)
    return "\n".join(["| | |", "|---|---|", *lines])


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|")
