import contextlib
import time

import pytest

from t2t_jax.errors import DataError
from t2t_jax.exchange.readers.yaml_file import parse_ids, parse_yaml

DEEP = ["[" * 5_000, "a: " + "{b: " * 5_000, "- " * 5_000]


def test_options_are_parsed():
    content = b"a: 1\nb:\n  - x\nc: true\n"
    assert parse_yaml(content, name="m") == {"a": 1, "b": ["x"], "c": True}


@pytest.mark.parametrize("parse", [parse_yaml, parse_ids])
@pytest.mark.parametrize(
    "content", [b"a: [", b"\xff\xfe", b"a: !!python/name:os.system x", b"- 1", *DEEP]
)
def test_other_content_is_an_error(parse, content):
    content = content if isinstance(content, bytes) else content.encode()
    with pytest.raises(DataError, match=r"m is not (a mapping|YAML)"):
        parse(content, name="m")


def test_nothing_is_executed(tmp_path):
    mark = tmp_path / "mark"
    content = f'a: !!python/object/apply:os.mkdir ["{mark}"]\n'.encode()
    for parse in (parse_yaml, parse_ids):
        with pytest.raises(DataError):
            parse(content, name="m")
    assert not mark.exists()


def test_pieces_are_quoted_or_not():
    content = '"</s>": 0\n"\\"": 1\n\u2581a: 2\n"#": 3\n'.encode()
    assert parse_ids(content, name="m") == {0: "</s>", 1: '"', 2: "\u2581a", 3: "#"}
    assert parse_ids(b'{"a": 0, "b": 5}', name="m") == {0: "a", 5: "b"}


@pytest.mark.parametrize(
    ("parse", "content"),
    [
        (parse_yaml, b"heads: 2\nheads: 4\n"),
        (parse_ids, b"a: 0\nb: 1\na: 2\n"),
        (parse_ids, b"a: 0\nb: 0\n"),
    ],
)
def test_what_is_there_twice_is_refused(parse, content):
    with pytest.raises(DataError, match="occurs twice"):
        parse(content, name="m")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: &x 1\n", "an anchor or an alias"),
        (f"a: {'x' * 70_000}", "more than 65,536 bytes"),
    ],
)
def test_what_multiplies_is_refused(content, message):
    with pytest.raises(DataError, match=rf"m is not YAML as Marian .*{message}"):
        parse_yaml(content.encode(), name="m")


@pytest.mark.parametrize(
    "content",
    [
        "a: 1" + ":1" * 32_000,
        "{" * 60_000,
        "? " * 30_000,
        "a: [" + "{<<: " * 10_000,
        "[" + "a, " * 20_000,
        "- " * 30_000,
        "a: |\n" + " \n" * 30_000,
        "'" + "\n" * 60_000,
    ],
)
def test_what_is_within_the_limit_takes_a_few_seconds(content):
    begin = time.process_time()
    for parse in (parse_yaml, parse_ids):
        with contextlib.suppress(DataError):
            parse(content.encode(), name="m")
    assert time.process_time() - begin < 5
