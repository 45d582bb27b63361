"""The description of the API, in the format and with the title of LibreTranslate's."""

from __future__ import annotations

from typing import Any

from t2t_jax.version import __version__

_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "What failed"}},
}
_ERRORS = {
    "400": "A parameter is missing or wrong, or a language is not served",
    "401": "An API key is required",
    "403": "The API key is wrong, or the request comes from a page of another origin",
    "408": "The request did not arrive in time",
    "413": "The body or the text is too long",
    "415": "The content type is neither JSON nor a form",
    "429": "Too many texts are waiting: see Retry-After",
    "500": "Translation failed",
    "503": "The server is stopping",
    "504": "The translation took too long",
}
_TEXTS = {
    "oneOf": [
        {"type": "string", "example": "Hello world!"},
        {"type": "array", "items": {"type": "string"}},
    ]
}


def _field(
    name: str, schema: dict[str, Any], about: str, *, required: bool = False
) -> dict[str, Any]:
    return {
        **{"in": "formData", "name": name, "schema": schema},
        **{"required": required, "description": about},
    }


def _string(**more: Any) -> dict[str, Any]:
    return {"type": "string", **more}


def _operation(
    about: str, parameters: list[dict[str, Any]], answer: str, schema: dict[str, Any]
) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": answer, "schema": schema}}
    if parameters:
        for status, description in _ERRORS.items():
            responses[status] = {"description": description, "schema": _ERROR}
    return {
        "summary": about,
        "tags": ["translate"],
        "parameters": parameters,
        "responses": responses,
    }


_Q = _field("q", _TEXTS, "Text, or a list of texts", required=True)
_KEY = _field("api_key", _string(), "API key, unless sent as Authorization: Bearer")
_TRUE = {"type": "boolean", "default": False}
_TRANSLATE = [
    _Q,
    _field("source", _string(example="en"), "Source language or auto", required=True),
    _field("target", _string(example="de"), "Target language", required=True),
    _field(
        "format",
        _string(enum=["text", "html"], default="text"),
        "Format of the text; the markup of HTML is kept",
    ),
    _field("alternatives", {"type": "integer", "default": 0}, "More translations"),
    _field(
        "split",
        _string(enum=["sentences", "lines"], default="sentences"),
        "Extension: translate sentence by sentence, or line by line",
    ),
    _field("segments", _TRUE, "Extension: add the sentences with their scores"),
    _field("token_scores", _TRUE, "Extension: log-probabilities of tokens"),
    _field("alignments", _TRUE, "Extension: source-target pairs of tokens"),
    _field("attention", _TRUE, "Extension: attention weights of the best translation"),
    _KEY,
]
_TRANSLATION = {
    "type": "object",
    "properties": {
        "translatedText": _TEXTS,
        "alternatives": {"type": "array"},
        "detectedLanguage": {"type": "object"},
        "segments": {"type": "array"},
    },
}
_DETECTIONS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "confidence": {"type": "number", "minimum": 0, "maximum": 100},
            "language": {"type": "string"},
        },
    },
}
_LANGUAGES = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "name": {"type": "string"},
            "targets": {"type": "array", "items": {"type": "string"}},
        },
    },
}
_OBJECT = {"type": "object"}

SPEC: dict[str, Any] = {
    "swagger": "2.0",
    # Clients look at the title to find out whether a server has this API.
    "info": {
        "title": "LibreTranslate",
        "version": __version__,
        "description": "LibreTranslate's API, served by t2t_jax.",
    },
    "paths": {
        "/translate": {
            "post": _operation("Translate texts", _TRANSLATE, "Texts", _TRANSLATION)
        },
        "/translate/stream": {
            "post": _operation(
                "Extension: translate texts, a line of JSON for each sentence",
                _TRANSLATE,
                "Lines of JSON, the last with done or error",
                _OBJECT,
            )
        },
        "/detect": {
            "post": _operation(
                "Detect the language of a text", [_Q, _KEY], "Languages", _DETECTIONS
            )
        },
        "/languages": {
            "get": _operation("List the languages", [], "Languages", _LANGUAGES)
        },
        "/frontend/settings": {
            "get": _operation("Settings of user interfaces", [], "Settings", _OBJECT)
        },
        "/health": {"get": _operation("Health of the server", [], "Health", _OBJECT)},
        "/metrics": {
            "get": _operation(
                "Extension: metrics of Prometheus", [], "Metrics", _string()
            )
        },
    },
}
