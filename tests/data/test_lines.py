import gzip
import subprocess
import sys

import pytest

from t2t_jax.data.lines import read_lines
from t2t_jax.errors import DataError, InputMissingError


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\n", ["a\rb"]),
        (b"a\r\r\n", ["a\r"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        ("a\u2028b\x85c\vd\fe\n".encode(), ["a\u2028b\x85c\vd\fe"]),
    ],
)
def test_a_line_ends_at_lf_and_nowhere_else(tmp_path, content, lines):
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(content))
    assert list(read_lines(tmp_path / "plain")) == lines
    assert list(read_lines(tmp_path / "packed.gz")) == lines


def test_invalid_utf8_and_nul_are_told_with_file_and_line(tmp_path):
    path = tmp_path / "news"
    path.write_bytes(b"good\nab\xffc\ngood\n\0\n")
    lines = read_lines(path)
    assert next(lines) == "good"
    with pytest.raises(DataError) as caught:
        next(lines)
    assert caught.value.problems == (
        f"{path}:2: invalid UTF-8 (byte 0xff in column 3). Convert the file to UTF-8.",
        f"{path}:4: holds a NUL byte. Remove it.",
    )


def test_twenty_problems_are_listed_and_the_others_counted(tmp_path):
    (tmp_path / "news").write_bytes(b"\xff\n" * 23)
    with pytest.raises(DataError) as caught:
        list(read_lines(tmp_path / "news"))
    assert len(caught.value.problems) == 20
    assert caught.value.unlisted == 3


@pytest.mark.parametrize(
    "damage", [lambda whole: whole[:-20], lambda whole: b"plain text\n"]
)
def test_broken_gzip_is_told(tmp_path, damage):
    whole = gzip.compress(bytes(range(32, 127)) * 100)
    (tmp_path / "news.gz").write_bytes(damage(whole))
    with pytest.raises(DataError, match=r"news\.gz:\d+: broken gzip"):
        list(read_lines(tmp_path / "news.gz"))


def test_a_file_that_is_not_there_or_none_is_told(tmp_path):
    with pytest.raises(InputMissingError, match="absent: no such file"):
        list(read_lines(tmp_path / "absent"))
    with pytest.raises(InputMissingError, match="must be a file"):
        list(read_lines(tmp_path))


def test_a_file_that_fails_while_it_is_read_is_told(tmp_path, monkeypatch):
    def fail(path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("t2t_jax.data.lines.open_bytes", fail)
    (tmp_path / "news").write_text("a\n")
    with pytest.raises(InputMissingError, match=r"news:1: .*Input/output error"):
        list(read_lines(tmp_path / "news"))


def test_standard_input_stops_at_the_first_broken_line():
    program = (
        "from t2t_jax.data.lines import read_lines\n"
        "try:\n"
        "    for line in read_lines('-'): print(ascii(line))\n"
        "except ValueError as error: print(error)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        input="a\u2028b\n".encode() + b"\xff\n\xff\n",
        capture_output=True,
        check=True,
    )
    lines = told.stdout.decode().splitlines()
    assert lines[0] == r"'a\u2028b'"
    assert lines[1].startswith("standard input:2: invalid UTF-8")
    assert len(lines) == 2
