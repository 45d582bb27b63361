"""Writes the model card, the README.md of an exported model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from t2t_jax.config import Config
from t2t_jax.data.corpora.open import train_and_dev
from t2t_jax.exporting.verification import TIE, Comparison
from t2t_jax.inference.provenance import SHA256SUMS, languages_of
from t2t_jax.model.architectures import count_parameters
from t2t_jax.model.config import ModelConfig, TransformerConfig

_USE_HERE = """\
With t2t_jax, installed from its sources{extra}:

```python
import t2t_jax
model = t2t_jax.load("{name}")
print(model.translate([{sentence}])[0])
```

or `python -m t2t_jax.main --mode=translate --workdir={name} < in.txt > out.txt`.
"""

_USE_CTRANSLATE2 = """\
With CTranslate2 and SentencePiece (`pip install ctranslate2 sentencepiece`), in the
directory above this one:

```python
import ctranslate2, sentencepiece
source = sentencepiece.SentencePieceProcessor("{name}/{source}.model")
target = sentencepiece.SentencePieceProcessor("{name}/vocab.model")
translator = ctranslate2.Translator("{name}", device="cpu")
pieces = source.encode({sentence}, out_type=str)
found = translator.translate_batch(
    [pieces],
    beam_size=4,
    length_penalty=0.6,
    max_input_length=0,
    max_decoding_length=min(len(pieces) + {max_extra_tokens}, {positions}),
    suppress_sequences={suppressed},
)
print(target.decode(found[0].hypotheses[0]))
```

The last three arguments make the search that of t2t_jax: without them CTranslate2
truncates sources at 1,024 subwords and outputs at 256, and may generate pad or bos. It
divides log-probabilities by n^alpha, the paper by ((5 + n) / 6)^alpha.

The model has {positions:,} positions: sources and outputs may not have more subwords,
eos included.
"""

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
      positions: of the CTranslate2 model; 0 for other formats.
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
    positions: int
    suppressed: Sequence[str]
    params_sha256: str
    vocabulary_sha256: str
    versions: Mapping[str, str]


def model_card(facts: ModelCardFacts) -> str:
    """Returns the model card as Markdown."""
    sections = [
        f"# {facts.name}\n\n{_opening(facts)}\n",
        f"## Use\n\n{_use(facts)}",
        f"## Model\n\n{_table(_model(facts))}",
        f"## Training\n\n{_table(_training(facts))}",
        f"## Scores\n\n{_scores(facts.origin)}",
        f"## Checked\n\n{_verification(facts)}",
        f"## Files\n\n`sha256sum --check {SHA256SUMS}` verifies them.\n",
    ]
    return "\n".join(sections)


def _opening(facts: ModelCardFacts) -> str:
    languages = languages_of(facts.config.data.train)
    between = f" from {languages[0]} to {languages[1]}" if languages else ""
    is_paper = facts.config.architecture == "transformer"
    kind = "a Transformer" if is_paper else "an LSTM with attention"
    return (
        f"A translation model{between}: {kind}, trained with t2t_jax, step "
        f"{facts.origin['step']:,}."
    )


def _use(facts: ModelCardFacts) -> str:
    # A JSON string is also a Python string.
    sentence = json.dumps(facts.origin["examples"][0], ensure_ascii=False)
    if facts.format == "ctranslate2":
        own_source = facts.config.vocabulary.source_size
        return _USE_CTRANSLATE2.format(
            name=facts.name,
            source="vocab_source" if own_source else "vocab",
            sentence=sentence,
            positions=facts.positions,
            max_extra_tokens=facts.config.decoding.max_extra_tokens,
            suppressed=json.dumps(
                [[piece] for piece in facts.suppressed], ensure_ascii=False
            ),
        )
    extra = ", with the extra `export`" if facts.format == "safetensors" else ""
    return _USE_HERE.format(name=facts.name, extra=extra, sentence=sentence)


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
        return "These parameters were not evaluated during training.\n"
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


def _verification(facts: ModelCardFacts) -> str:
    found = facts.comparison
    other = "CTranslate2" if facts.format == "ctranslate2" else "this directory"
    rows = [
        ("greedy outputs with equal tokens", f"{found.equal} of {found.lines}"),
        (f"of the others, ties within {TIE:g}", found.ties),
        (
            f"outputs with beam {found.beam_size} that are equal",
            f"{found.beam_equal} of {found.lines}",
        ),
        (
            "largest difference of a token's log-probability",
            f"{found.largest_difference:.2g}",
        ),
        ("mean difference", f"{found.mean_difference:.2g}"),
        ("BLEU, greedy: before, after", _before_after(found.bleu, found.exported_bleu)),
        (
            "BLEU, beam: before, after",
            _before_after(found.beam_bleu, found.exported_beam_bleu),
        ),
        ("accepted loss of BLEU", f"{facts.max_bleu_loss:g}"),
        ("signature", f"`{found.bleu_signature}`"),
    ]
    return (
        f"{found.lines:,} lines of `{found.text}` were translated with the trained "
        f"model in float32 and with {other}, at alpha 0:\n\n{_table(rows)}"
    )


def _before_after(before: float, after: float) -> str:
    return f"{before:.2f}, {after:.2f}"


def _table(rows: Iterable[tuple[str, object]]) -> str:
    cells = ((name, str(value).replace("|", "\\|")) for name, value in rows)
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in cells)]
    return "\n".join(lines) + "\n"
