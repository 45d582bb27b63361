"""Model cards, the README.md of a model, from the templates beside this file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from jinja2 import Environment

from t2t_jax.data.corpora.open import train_and_dev
from t2t_jax.data.vocabulary.vocabulary import table_of
from t2t_jax.evaluation.protocol import fingerprint_params
from t2t_jax.exchange.exporting.base import (
    ExportFormat,
    ExportSpec,
    Original,
    divisor,
)
from t2t_jax.exchange.exporting.verification import TIE, Comparison
from t2t_jax.files import template_environment
from t2t_jax.model.config import ModelConfig, TransformerConfig
from t2t_jax.model.counting import count_parameters
from t2t_jax.run.first_start import BEGAN_WITH
from t2t_jax.run.inference.provenance import CHANGES, SHA256SUMS, versions
from t2t_jax.run.text import spec_of_names

# Keys that are listed where they are not the default.
_NOT_OF_THE_PAPER = (
    *("norm", "num_decoder_layers", "activation", "attention_biases", "output_bias"),
    *("scale_embeddings", "position_rates", "first_position", "start", "tag_position"),
)

_SCORES = {"bleu": "BLEU", "chrf": "chrF"}
# Of a comparison whose BLEU says something about the model.
_FEWEST_LINES = 100


def fill_template(template: str, /, **values: object) -> str:
    """Fills a Markdown file of the folder `templates`, such as "ctranslate2"."""
    return _environment().get_template(f"{template}.md").render(values).rstrip()


def fill_usage(template: str, original: Original, name: str, **values: object) -> str:
    """Describes how an export is used.

    Args:
      name: of its directory.
    """
    example = json.dumps(original.origin["examples"][0], ensure_ascii=False)
    return fill_template(
        template,
        name=name,
        sentence=example,  # A JSON string is also a Python string.
        model=original.config.model,
        decoding=original.config.decoding,
        **values,
    )


@cache
def _environment() -> Environment:
    environment = template_environment("t2t_jax.exchange")
    environment.filters["commas"] = "{:,}".format
    # In a table a bar would begin another column.
    environment.filters["cell"] = lambda text: str(text).replace("|", "\\|")
    return environment


def model_card(
    name: str,
    form: ExportFormat,
    original: Original,
    comparison: Comparison,
    *,
    spec: ExportSpec,
) -> str:
    """Writes the card of an export.

    Args:
      name: of the directory.
      spec: with the loss of BLEU that was accepted.
    """
    config, origin = original.config, original.origin
    vocabularies = original.model.vocabularies
    is_paper = config.architecture == "transformer"
    is_table = table_of(vocabularies.target)
    result = _result(original, comparison, exact=spec.quantization == "float32")
    card = fill_template(
        "model_card",
        name=name,
        form=form,
        spec=spec,
        # In float32, before quantization.
        params_sha256=fingerprint_params(original.model.params),
        vocabulary_sha256=vocabularies.fingerprint,
        versions=versions(),
        config=config,
        origin=origin,
        checked=comparison,
        metadata=_hub_metadata(name, form, original, result),
        divisor=divisor(config.decoding),
        directions=original.directions,
        kind="a Transformer" if is_paper else "an LSTM with attention",
        made=_made(origin),
        use=form.usage(original, name=name),
        keys=_keys(config.network),
        parameters=count_parameters(config.network).total,
        vocabulary_kind="of another toolkit" if is_table else "SentencePiece, BPE",
        began_with=config.init_from and _began_with(config.init_from, origin),
        train_text=spec_of_names(train_and_dev(config.data)[0]),
        tie=TIE,
        sha256sums=SHA256SUMS,
    )
    return f"{card}\n"


def _keys(network: ModelConfig) -> list[str]:
    """Returns the keys of a model that its card lists."""
    if not isinstance(network, TransformerConfig):
        return ["num_layers", "d_model", "tying"]
    return [
        *("num_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v"),
        *("norm_position", "positions", "tying", "layer_norm_epsilon"),
        *(
            key
            for key in _NOT_OF_THE_PAPER
            if getattr(network, key) != getattr(TransformerConfig, key)
        ),
    ]


def _made(origin: Mapping[str, Any]) -> str:
    made = [CHANGES[kind] for kind in origin.get("kinds", ()) if kind in CHANGES]
    changed = "".join(f", then {one}" for one in made)
    if "imported" in origin:
        return f"imported into t2t_jax as {origin['imported']['format']}{changed}"
    return f"trained with t2t_jax, step {origin['step']:,}{changed}"


def _began_with(directory: str, origin: Mapping[str, Any]) -> str:
    """Returns the name of a directory, and the format that it was imported from."""
    name, imported = f"`{Path(directory).name}`", origin.get(BEGAN_WITH)
    return f"{name}, from an import of {imported['format']}" if imported else name


def _hub_metadata(
    name: str, form: ExportFormat, original: Original, result: Mapping[str, Any]
) -> str:
    """Returns the metadata of a model as YAML, without the lines `---`."""
    origin, named = original.origin, chain(*original.directions)
    # The hub has no regions: pt_BR is pt.
    codes = (re.split("[_-]", code)[0].lower() for code in named)
    # The licence of the weights that it began with, if any.
    imported = origin.get("imported") or origin.get(BEGAN_WITH) or {}
    metadata = {
        "language": list(dict.fromkeys(codes)),
        "license": original.license or str(imported.get("license", "")),
        "library_name": form.library,
        "pipeline_tag": "translation",
        "tags": list(dict.fromkeys(["translation", "t2t_jax", *form.tags])),
        "metrics": list(_SCORES),
        "model-index": [{"name": name, "results": [result]}] if result else [],
    }
    # A JSON value is one of YAML.
    known = (f"{key}: {json.dumps(value)}" for key, value in metadata.items() if value)
    return "\n".join(known)


def _result(original: Original, checked: Comparison, *, exact: bool) -> dict[str, Any]:
    """Returns scores of the development text, as Hugging Face has them.

    Or the BLEU of the comparison, where they are not known or the export is quantized,
    if it was of 100 lines or more; else {}.
    """
    development = original.origin.get("development", {})
    text = original.origin.get("data", {}).get("dev", {}).get("spec")
    if exact and text and "bleu" in development:
        scores = development
    elif checked.lines < _FEWEST_LINES:
        return {}
    else:
        text = (
            f"{checked.text}: {checked.lines:,} lines, beam "
            f"{checked.beam_size}, length penalty {checked.length_penalty:g}"
        )
        scores = {"bleu": checked.exported_beam_bleu}
        scores["bleu_signature"] = checked.bleu_signature
    metrics = [
        {
            "type": name,
            "name": f"{title} {scores.get(f'{name}_signature', '')}".strip(),
            "value": round(scores[name], 2),
        }
        for name, title in _SCORES.items()
        if isinstance(scores.get(name), int | float)
    ]
    return {
        "task": {"type": "translation", "name": "Translation"},
        "dataset": {"type": text.partition(":")[0], "name": text},
        "metrics": metrics,
    }
