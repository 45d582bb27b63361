"""Reads the parameters of requests (JSON, forms, queries), and makes the responses."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeAlias

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, FormParser, parse_options_header
from starlette.exceptions import HTTPException

from t2t_jax.data.corpora.corpus import truncate
from t2t_jax.data.vocabulary.tokenizers import shown_tags
from t2t_jax.decoding.text.segments import replace_lone_surrogates
from t2t_jax.decoding.text.sentences import Layout, Sentence, lay_out
from t2t_jax.decoding.text.translation import (
    Hypothesis,
    Translation,
    hypothesis_fields,
)
from t2t_jax.files import reject_constant
from t2t_jax.run.text import name_of_language
from t2t_jax.serving.config import ServingConfig
from t2t_jax.serving.html_layout import HtmlLayout
from t2t_jax.serving.languages import AUTO, Languages

Place: TypeAlias = tuple[int, int]
"""The numbers of a text and of a sentence in it."""

SPLITS = ("sentences", "lines")
"""How a text is divided: at the ends of sentences too, or only of lines."""

FORMATS = ("text", "html")
"""What a text is; of HTML the text is translated and the markup kept."""

DETAILS = ("segments", "token_scores", "alignments", "attention")
"""Parameters, true or false, that add `segments` to a response."""

_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_MAX_FIELDS = 64
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")
_MAX_ALTERNATIVES = 100
_SHOWN = 40
_DIGITS = 4  # of numbers in responses
_LEAVES = (str, float, int)
_SWITCH: dict[object, bool] = {
    **dict.fromkeys((True, "true", "1", "on"), True),
    **dict.fromkeys((False, None, "false", "0", "", "off"), False),
}


class RequestError(HTTPException):
    """A request that cannot be answered: a status, and a text for the client."""


class TranslateRequest(NamedTuple):
    """A request to translate texts.

    Attributes:
      texts: the texts, divided into sentences.
      sentences: of all texts, in order.
      is_list: whether `q` was a list.
      sources: the code of the source language of each text.
      detected: of each text, if the source language was detected.
      alternatives: how many further translations are wanted.
      details: names of what is wanted for each sentence.
      is_html: whether the texts are HTML, of which only the text is translated.
    """

    texts: tuple[Layout | HtmlLayout, ...]
    sentences: Mapping[Place, Sentence]
    is_list: bool
    sources: Sequence[str]
    detected: Sequence[Mapping[str, Any]]
    target: str
    alternatives: int
    details: frozenset[str]
    is_html: bool


def parse_body(content_type: str, body: bytes, query: bytes) -> dict[str, Any]:
    """Reads the parameters of a body, in JSON or a form, and of the query.

    Raises:
      RequestError: the body is not what its content type says, or of another type.
    """
    name, options = parse_options_header(content_type)
    kind = name.decode("latin-1").strip()
    charset = options.get(b"charset", b"").lower()
    if charset not in (b"", b"utf-8", b"utf8", b"us-ascii"):
        raise RequestError(415, "The charset of a request must be UTF-8.")
    if kind == "application/json" or kind.endswith("+json"):
        return _parse_json(body)
    if body and kind not in (_FORM, _MULTIPART):
        about = "The content type must be application/json or that of a form."
        raise RequestError(415, about)
    try:
        fields = _parse_form(query)
        if kind == _MULTIPART:
            fields |= _parse_multipart(options.get(b"boundary", b""), body)
        else:
            fields |= _parse_form(body)
    except (ValueError, FormParserError) as error:
        raise RequestError(400, "Invalid form") from error
    # Forms are sent with CRLF at the ends of lines.
    return {name: value.replace("\r\n", "\n") for name, value in fields.items()}


def _parse_json(body: bytes) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        # Infinity and NaN are not JSON.
        found = json.loads(body.decode("utf-8"), parse_constant=reject_constant)
        if isinstance(found, dict):
            return found
    raise RequestError(400, "Invalid JSON format")


def _parse_form(body: bytes) -> dict[str, str]:
    # Not urllib's parse_qsl, which takes 190 bytes of memory for each "%" (3.11.7).
    pairs = body.replace(b"+", b" ").split(b"&", _MAX_FIELDS)
    if len(pairs) > _MAX_FIELDS:
        raise ValueError("too many fields")
    named = [pair.partition(b"=") for pair in reversed(pairs) if pair]
    return {_unescaped(name): _unescaped(value) for name, _, value in named}


def _unescaped(text: bytes) -> str:
    return _ESCAPE.sub(lambda found: bytes((int(found[1], 16),)), text).decode()


def _parse_multipart(boundary: bytes, body: bytes) -> dict[str, str]:
    found: list[Field] = []
    ended: list[bool] = []
    parser = FormParser(
        "multipart/form-data",
        found.append,
        on_file=None,
        on_end=lambda: ended.append(True),
        boundary=boundary,
        # Nothing goes to a disk.
        config={"MAX_FIELDS": _MAX_FIELDS, "MAX_MEMORY_FILE_SIZE": len(body) + 1},
    )
    parser.write(body)
    if not ended:
        raise ValueError("no end")
    pairs = [(one.field_name or b"", one.value or b"") for one in reversed(found)]
    return {name.decode(): value.decode() for name, value in pairs}


def read_translate_request(
    fields: Mapping[str, Any], languages: Languages, config: ServingConfig
) -> TranslateRequest:
    """Checks the parameters of a request to translate.

    Raises:
      RequestError: one is missing or wrong, or the text is too long.
    """
    texts, is_list = read_texts(fields, config)
    source, target = (_code(fields, name) for name in ("source", "target"))
    split, is_html = _how_to_read(fields)
    alternatives = _number(fields, "alternatives", most=_MAX_ALTERNATIVES)
    details = frozenset(name for name in DETAILS if _switch(fields, name))
    if target not in languages.codes:
        raise _unsupported(target, languages)
    is_detailed = bool(details - {"segments"})
    if alternatives or is_detailed:
        _require_short(sum(map(len, texts)), config.max_detailed_characters, "texts")
    longest = config.max_detailed_sentence
    lay = partial(HtmlLayout, max_aligned=longest) if is_html else lay_out
    layouts: tuple[Layout | HtmlLayout, ...]
    layouts = tuple(lay(text, split=split) for text in texts)
    sentences = {
        (text, number): sentence
        for text, layout in enumerate(layouts)
        for number, sentence in enumerate(layout.sentences)
    }
    if is_detailed:
        lengths = (len(sentence.text) for sentence in sentences.values())
        _require_short(max(lengths, default=0), longest, "sentences")
    # What could never get a place in the queue, or would leave none to others.
    most = max(1, min(config.max_sentences, config.max_waiting // 2))
    _require(len(sentences), most, "sentences")
    if is_html:  # markup is in no language
        texts = [" ".join(one.text for one in layout.sentences) for layout in layouts]
    sources, detected = _sources(source, target, texts, languages)
    return TranslateRequest(
        texts=layouts,
        sentences=sentences,
        is_list=is_list,
        sources=sources,
        detected=detected,
        target=target,
        alternatives=alternatives,
        details=details,
        is_html=is_html,
    )


def _how_to_read(fields: Mapping[str, Any]) -> tuple[str, bool]:
    """Returns how texts are divided, and whether they are HTML."""
    split = fields.get("split") or SPLITS[0]
    text_format = fields.get("format") or FORMATS[0]
    if split not in SPLITS:
        raise invalid(f"split must be one of {', '.join(SPLITS)}")
    if text_format not in FORMATS:
        raise RequestError(400, f"{_shown(text_format)} format is not supported")
    return split, text_format == "html"


def _sources(
    source: str, target: str, texts: Sequence[str], languages: Languages
) -> tuple[list[str], list[Mapping[str, Any]]]:
    """Returns the source language of each text, and what was detected, if it was."""
    detected: list[Mapping[str, Any]] = []
    if source == AUTO:
        among = languages.sources.get(target, ())
        detected = [languages.detect(text, among=among)[0] for text in texts]
    sources = [one["language"] for one in detected] or [source] * len(texts)
    for code in dict.fromkeys(sources):
        if code not in languages.codes:
            raise _unsupported(code, languages)
        if (code, target) not in languages.models:
            to, of = (f"{name_of_language(one)} ({one})" for one in (target, code))
            known = shown_tags(languages.targets.get(code, ()), target) or "none"
            about = f"{to} is not available as a target language from {of}"
            raise RequestError(400, f"{about}; available: {known}")
    return sources, detected


def _require_short(size: int, most: int, unit: str) -> None:
    """Refuses details of long texts: their answers would be many times as long."""
    if size > most:
        also = "alternatives, " if unit == "texts" else ""
        raise invalid(
            f"{also}token_scores, alignments and attention are for {unit} of up to "
            f"{most} characters, and this has {size}. Leave them out, or send less text"
        )


def read_texts(
    fields: Mapping[str, Any], config: ServingConfig
) -> tuple[list[str], bool]:
    """Checks the texts of a request.

    Returns:
      The texts, and whether they were sent as a list.

    Raises:
      RequestError: they are missing, not strings, too many or too long.
    """
    q = fields.get("q")
    if not q and q not in (0, False):
        raise invalid("missing q parameter")
    texts = q if isinstance(q, list) else [q]
    if not all(isinstance(text, str) for text in texts):
        raise invalid("q must be a string or a list of strings")
    _require(len(texts), config.max_texts, "texts")
    _require(sum(map(len, texts)), config.max_characters, "characters")
    return [replace_lone_surrogates(text) for text in texts], isinstance(q, list)


def invalid(reason: str) -> RequestError:
    """Makes the error of a parameter that is missing or wrong."""
    return RequestError(400, f"Invalid request: {reason}")


def _require(size: int, limit: int, unit: str) -> None:
    if size > limit:
        about = f"request ({size} {unit}) exceeds text limit ({limit} {unit})"
        raise RequestError(413, f"Invalid request: {about}")


def _code(fields: Mapping[str, Any], name: str) -> str:
    if (value := fields.get(name)) and isinstance(value, str):
        return value
    raise invalid(f"{name} must be a string" if value else f"missing {name} parameter")


def _unsupported(code: str, languages: Languages) -> RequestError:
    known = shown_tags(languages.codes, code)
    return RequestError(400, f"{_shown(code)} is not supported; supported: {known}")


def _switch(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name, False)
    text = value.lower() if isinstance(value, str) else value
    if not isinstance(text, Hashable) or text not in _SWITCH:
        raise invalid(f"{name} must be true or false")
    return _SWITCH[text]


def _number(fields: Mapping[str, Any], name: str, *, most: int) -> int:
    value = fields.get(name, 0)
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value[:9])
    if type(value) is not int or not 0 <= value <= most:
        raise invalid(f"{name} must be a number from 0 to {most}")
    return value


def _shown(value: object) -> str:
    """Returns a value for a message, truncated and in one line, without quotes."""
    # Of others the type: what is nested deeply has no text.
    known = value if isinstance(value, str) else type(value).__name__
    text = "".join(c if c.isprintable() else "?" for c in known[: _SHOWN + 1])
    return truncate(text, _SHOWN)


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
        if (weights_TxS := one.attention_TxS) is not None and weights_TxS.size:
            # The eos of the source is not aligned.
            largest_Tx1 = weights_TxS[:, :-1].max(axis=1, keepdims=True, initial=0)
            weights_TxS = (weights_TxS == largest_Tx1) & (weights_TxS > 0)
        hypotheses.append(dataclasses.replace(one, attention_TxS=weights_TxS))
    return dataclasses.replace(translation, hypotheses=tuple(hypotheses))


def segment(
    request: TranslateRequest, place: Place, translation: Translation
) -> dict[str, Any]:
    """Makes the details of a sentence, with the names of `--format=jsonl`."""
    sentence = request.sentences[place]
    hypotheses = translation.hypotheses[: 1 + request.alternatives]
    details = chain([request.details], repeat(request.details - {"attention"}))
    return {
        "gap": sentence.gap,  # the white space before it
        "source": sentence.text,
        "status": translation.status,
        "statuses": translation.statuses,
        "translation": translation.text,
        "score": _rounded(translation.score),
        "unseen_words": _rounded(translation.unseen_words),
        "source_tokens": translation.source_tokens,
        "hypotheses": list(map(_hypothesis, hypotheses, details)),
    }


def _hypothesis(one: Hypothesis, details: Collection[str]) -> dict[str, Any]:
    fields = hypothesis_fields(one, details, rounded=_rounded)
    if "attention" in details and one.attention_TxS is not None:
        rows = one.attention_TxS.tolist()
        fields["attention"] = [list(map(_rounded, row)) for row in rows]
    return fields


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(float(number), _DIGITS)
