"""Bodies of requests that are wrong, and of some that are only odd."""

import json

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
GOOD = {"q": "hello", "source": "en", "target": "de"}
LIMITS = {"max_body_bytes": 9_000, "max_characters": 700, "max_texts": 11}


def with_fields(**fields):
    return json.dumps({**GOOD, **fields}).encode()


_NOT_JSON = [
    *("", "{", "[]", "1", "null", '"q"', "{'q': 1}", '{"q": NaN}', "[[[[", "[" * 8_000),
    *('{"q":' * 1_500, '{"q": ' + "9" * 5_000 + "}", "{" + " " * 8_000),
    '{"q": Infinity, "source": "en", "target": "de"}',
]
_NOT_TEXT = [b"\xff\xfe{\x00}\x00", b'{"q": "\xed\xa0\x80"}', b"\x80", b"\x00" * 9]
_NO_STRINGS = [None, 7, 0.5, True, False, {}, {"a": 1}, [], [[]], ""]
_NO_CODES = ["xx", "EN", "en\n", "\0", "e" * 600, "../en", "\ud800", "<b>", ["en"]]
_NO_SWITCH = ["yes", 2, [], {}, "\u2713", 0.5]
_WRONG_VALUES = {
    "q": [*_NO_STRINGS, [None], [3], ["a", 3], [["a"]]],
    "source": [*_NO_STRINGS, *_NO_CODES],
    "target": [*_NO_STRINGS, *_NO_CODES],
    "format": ["HTML", "pdf", 3, ["text"], {"a": 1}],
    "alternatives": [-1, 101, "x", "1.5", 1.5, [1], "\u0663", True, None, "9" * 300],
    "split": ["words", 1, ["lines"]],
    "segments": _NO_SWITCH,
    "token_scores": _NO_SWITCH,
    "alignments": _NO_SWITCH,
    "attention": _NO_SWITCH,
}
_MISSING = [{k: v for k, v in GOOD.items() if k != name} for name in GOOD]
_WRONG_FORMS = [
    *(b"q=%ff&source=en&target=de", b"q=\xff", b"a=1&" * 99, b"", b"&&&", b"="),
    *(b"q=a&source=en", b"{}", b"q[]=a&source=en&target=de"),
]
_PART = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n'
_WRONG_PARTS = [b"", b"--x", _PART, _PART + b"\xff\xff\r\n--x--\r\n", b"--x\r\n" * 90]
_BOUNDARIES = ["", "; boundary=", "; boundary=y", '; boundary="', "; boundary=x\xe9"]

WRONG_BODIES = [
    *((JSON, text.encode(), 400) for text in _NOT_JSON),
    *((JSON, body, 400) for body in _NOT_TEXT),
    *((JSON, json.dumps(fields).encode(), 400) for fields in _MISSING),
    *(
        (JSON, with_fields(**{name: value}), 400)
        for name, values in _WRONG_VALUES.items()
        for value in values
    ),
    (JSON, with_fields(q="x" * 701), 413),
    (JSON, with_fields(q=["x" * 71] * 10), 413),
    (JSON, with_fields(q=["x"] * 12), 413),
    (JSON, b'{"q": "' + b"x" * 9_000 + b'"}', 413),
    (FORM, b"q=" + b"x" * 9_001, 413),
    *((FORM, body, 400) for body in _WRONG_FORMS),
    *((f"{MULTIPART}; boundary=x", body, 400) for body in _WRONG_PARTS),
    *((MULTIPART + end, b"--x\r\n\r\na\r\n--x--\r\n", 400) for end in _BOUNDARIES),
    *((kind, b"q=a", 415) for kind in ("text/plain", "image/png", "x", f"{JSON}x")),
    (f"{JSON}; charset=utf-16", with_fields(), 415),
    (f"{FORM}; charset=latin-1", b"q=a", 415),
]
"""Content type, body, status."""

_ODD_TEXTS = [
    *("\ud800", "a\udfffb", "\0", "\ufeff", "\u202eabc", "e" + "\u0301" * 50),
    *("\U0001f469\u200d\U0001f680", "\uffff", "\u2028x\u2029", " \n\t ", "\x85"),
    *("<script>alert(1)</script>", "'; DROP TABLE x; --", "{{7*7}}", "%s%n", "\\"),
]
ODD_BODIES = [
    *(with_fields(q=text) for text in _ODD_TEXTS),
    *(with_fields(q=[text, text]) for text in _ODD_TEXTS),
    with_fields(api_key="unneeded", more=[1, {"a": None}]),
    b'{"q": "a", "q": "b", "source": "en", "target": "de"}',
]
"""Bodies that are answered."""
