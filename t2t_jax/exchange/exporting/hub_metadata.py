"""The head of a model card, which Hugging Face's hub reads: YAML between `---`."""

from __future__ import annotations

import json
import re
from typing import Any

from t2t_jax.exchange.exporting.base import ExportFormat, Original
from t2t_jax.exchange.exporting.verification import Comparison

_SCORES = {"bleu": "BLEU", "chrf": "chrF"}
_FEWEST_LINES = 100
"""Of a comparison whose BLEU says something about the model."""


def hub_metadata(
    name: str,
    form: ExportFormat,
    original: Original,
    comparison: Comparison,
    *,
    quantization: str = "float32",
) -> str:
    """Returns the metadata of a model as YAML, without the lines `---`.

    Its scores are those of the development text; or the BLEU of the comparison, where
    they are not known or the export is quantized, if it was of 100 lines or more.

    Args:
      name: of the model.
      quantization: of the export; the run's own scores are of float32.
    """
    metadata: dict[str, Any] = {}
    if original.languages:
        # The hub has no regions: pt_BR is pt.
        codes = (re.split("[_-]", code)[0].lower() for code in original.languages)
        metadata["language"] = list(dict.fromkeys(codes))
    if original.license:
        metadata["license"] = original.license
    exact = quantization == "float32"
    metadata |= {
        "library_name": form.library,
        "pipeline_tag": "translation",
        "tags": list(dict.fromkeys(["translation", "t2t_jax", *form.tags])),
        "metrics": list(_SCORES),
    }
    if result := _result(original, comparison, exact=exact):
        metadata["model-index"] = [{"name": name, "results": [result]}]
    # A JSON value is one of YAML.
    return "\n".join(f"{key}: {json.dumps(metadata[key])}" for key in metadata)


def _result(
    original: Original, comparison: Comparison, *, exact: bool
) -> dict[str, Any] | None:
    development = original.origin.get("development", {})
    text = original.origin.get("data", {}).get("dev", {}).get("spec")
    if exact and text and "bleu" in development:
        scores = development
    elif comparison.lines < _FEWEST_LINES:
        return None
    else:
        text = (
            f"{comparison.text}: {comparison.lines:,} lines, beam "
            f"{comparison.beam_size}, length penalty {comparison.length_penalty:g}"
        )
        scores = {
            "bleu": comparison.exported_beam_bleu,
            "bleu_signature": comparison.bleu_signature,
        }
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
