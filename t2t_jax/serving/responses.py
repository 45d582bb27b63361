"""Makes the JSON of responses."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from t2t_jax.serving.requests import TranslateRequest

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
    request: TranslateRequest, translations: Sequence[Sequence[Translation]]
) -> bytes:
    """Makes the JSON of LibreTranslate's response, and `segments` if requested.

    Args:
      translations: of the sentences of each text.
    """
    pairs = list(zip(request.texts, translations, strict=True))
    fields: dict[str, Any] = {
        "translatedText": [layout.fill(found) for layout, found in pairs]
    }
    if request.alternatives:
        fields["alternatives"] = [
            _alternatives(request, number, found)
            for number, found in enumerate(translations)
        ]
    if request.detected:
        fields["detectedLanguage"] = list(request.detected)
    if request.details:
        fields["segments"] = [
            [
                segment(sentence.gap, sentence.text, one, request)
                for sentence, one in zip(layout.sentences, found, strict=True)
            ]
            for layout, found in pairs
        ]
    if not request.is_list:
        fields = {name: value[0] for name, value in fields.items()}
    return to_json(fields)


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


def _alternatives(
    request: TranslateRequest, number: int, found: Sequence[Translation]
) -> list[str]:
    """Lists other translations of a text: the second best of each sentence, and so on.

    A sentence that has fewer contributes its last.
    """
    layout = request.texts[number]
    most = max((len(one.hypotheses) for one in found), default=0)
    texts = [layout.fill(found, rank=rank) for rank in range(most)]
    return list(dict.fromkeys(texts))[1 : 1 + request.alternatives]


def segment(
    gap: str, source: str, translation: Translation, request: TranslateRequest
) -> dict[str, Any]:
    """Makes the details of a sentence, with the names of `--format=jsonl`.

    Args:
      gap: the white space before the sentence.
    """
    hypotheses = translation.hypotheses[: 1 + request.alternatives]
    return {
        "gap": gap,
        "source": source,
        "status": translation.status,
        "statuses": translation.statuses,
        "translation": translation.text,
        "score": _rounded(translation.score),
        "unseen_words": _rounded(translation.unseen_words),
        "source_tokens": translation.source_tokens,
        "hypotheses": [
            dict(_fields(hypothesis, request, is_best=rank == 0))
            for rank, hypothesis in enumerate(hypotheses)
        ],
    }


def _fields(
    hypothesis: Hypothesis, request: TranslateRequest, *, is_best: bool
) -> Iterator[tuple[str, Any]]:
    yield "translation", hypothesis.text
    yield "score", _rounded(hypothesis.score)
    yield "log_probability", _rounded(hypothesis.log_probability)
    yield "num_tokens", hypothesis.num_tokens
    yield "tokens", hypothesis.tokens
    if "token_scores" in request.details:
        logs = hypothesis.token_log_probabilities
        yield "token_log_probabilities", list(map(_rounded, logs))
    if "alignments" in request.details:
        yield "alignment", hypothesis.alignment()
    weights_TxS = hypothesis.attention_TxS
    if "attention" in request.details and is_best and weights_TxS is not None:
        yield "attention", [list(map(_rounded, row)) for row in weights_TxS.tolist()]


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(float(number), _DIGITS)


def error_body(message: str, **more: Any) -> Mapping[str, Any]:
    """Makes LibreTranslate's response to a request that failed."""
    return {"error": message, **more}
