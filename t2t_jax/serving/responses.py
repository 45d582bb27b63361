"""Makes the JSON of responses."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from t2t_jax.serving.requests import Place, TranslateRequest

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translation import Hypothesis, Translation

_DIGITS = 4
_LEAVES = (str, float, int)


def to_json(value: Any) -> bytes:
    """Encodes a value as JSON in UTF-8, in parts: `json` lets no other thread run."""
    if isinstance(value, Mapping):
        pairs = [to_json(name) + b":" + to_json(one) for name, one in value.items()]
        return b"{" + b",".join(pairs) + b"}"
    if isinstance(value, list | tuple) and value and not isinstance(value[0], _LEAVES):
        return b"[" + b",".join(map(to_json, value)) + b"]"
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def translate_response(
    request: TranslateRequest, found: Mapping[Place, Translation]
) -> bytes:
    """Makes the JSON of LibreTranslate's response, and `segments` if requested.

    Args:
      found: the translations of the sentences.
    """
    fields: dict[str, list[Any]] = defaultdict(list)
    for text, layout in enumerate(request.texts):
        places = [(text, number) for number in range(len(layout.sentences))]
        translations = [found[place] for place in places]
        fields["translatedText"].append(layout.fill(translations))
        if request.alternatives:
            # The second best of each sentence, and so on; of fewer, the last.
            most = max((len(one.hypotheses) for one in translations), default=0)
            texts = [layout.fill(translations, rank=rank) for rank in range(most)]
            others = list(dict.fromkeys(texts))[1 : 1 + request.alternatives]
            fields["alternatives"].append(others)
        if request.detected:
            fields["detectedLanguage"].append(request.detected[text])
        if request.details:
            segments = [segment(request, place, found[place]) for place in places]
            fields["segments"].append(segments)
    if request.is_list:
        return to_json(fields)
    return to_json({name: value[0] for name, value in fields.items()})


def without_weights(translation: Translation) -> Translation:
    """Replaces attention weights by what an alignment takes of them, in a byte each."""
    hypotheses = []
    for one in translation.hypotheses:
        weights_TxS = one.attention_TxS
        if weights_TxS is not None and weights_TxS.size:
            largest_Tx1 = weights_TxS.max(axis=1, keepdims=True)
            weights_TxS = (weights_TxS == largest_Tx1) & (weights_TxS > 0)
        hypotheses.append(dataclasses.replace(one, attention_TxS=weights_TxS))
    return dataclasses.replace(translation, hypotheses=tuple(hypotheses))


def segment(
    request: TranslateRequest, place: Place, translation: Translation
) -> dict[str, Any]:
    """Makes the details of a sentence, with the names of `--format=jsonl`."""
    sentence = request.sentences[place]
    hypotheses = translation.hypotheses[: 1 + request.alternatives]
    return {
        "gap": sentence.gap,  # the white space before it
        "source": sentence.text,
        "status": translation.status,
        "statuses": translation.statuses,
        "translation": translation.text,
        "score": _rounded(translation.score),
        "unseen_words": _rounded(translation.unseen_words),
        "source_tokens": translation.source_tokens,
        "hypotheses": [
            _hypothesis(one, request.details - ({"attention"} if rank else set()))
            for rank, one in enumerate(hypotheses)
        ],
    }


def _hypothesis(one: Hypothesis, details: Collection[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "translation": one.text,
        "score": _rounded(one.score),
        "log_probability": _rounded(one.log_probability),
        "num_tokens": one.num_tokens,
        "tokens": one.tokens,
    }
    if "token_scores" in details:
        logs = one.token_log_probabilities
        fields["token_log_probabilities"] = list(map(_rounded, logs))
    if "alignments" in details:
        fields["alignment"] = one.alignment()
    if "attention" in details and one.attention_TxS is not None:
        rows = one.attention_TxS.tolist()
        fields["attention"] = [list(map(_rounded, row)) for row in rows]
    return fields


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(float(number), _DIGITS)
