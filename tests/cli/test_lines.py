import gzip
import io
import os
import sys

import pytest

from t2t_jax.cli.lines import opened_output, read_stdin_or_file, write_lines
from t2t_jax.errors import DataError, InputMissingError, OutputError


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),  # the last newline is missing
        (b"a\n\n\nb\n\n", ["a", "", "", "b", ""]),
        ("ä\u2028b\x85c\x0bd\n".encode(), ["ä\u2028b\x85c\x0bd"]),  # one line only
        (b"a\xff\xfeb\nc\n", ["a\ufffd\ufffdb", "c"]),
        (b" a \t\n", [" a \t"]),
    ],
)
def test_lines_end_at_newlines_only_and_none_is_lost(
    tmp_path, monkeypatch, data, lines
):
    plain, zipped = tmp_path / "in.txt", tmp_path / "in.txt.gz"
    plain.write_bytes(data)
    zipped.write_bytes(gzip.compress(data))
    assert read_stdin_or_file(str(plain)) == lines
    assert read_stdin_or_file(str(zipped)) == lines
    with plain.open(encoding="ascii") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert read_stdin_or_file("-") == lines


def test_what_is_called_gz_and_is_not_is_refused(tmp_path):
    path = tmp_path / "in.gz"
    path.write_bytes(b"a\nb\n")
    with pytest.raises(DataError, match=f"--input={path} is broken gzip"):
        read_stdin_or_file(str(path))


def test_a_missing_input_is_named(tmp_path):
    for path in (tmp_path / "nothere", tmp_path):
        with pytest.raises(InputMissingError, match=f"--input={path} must be a file"):
            read_stdin_or_file(str(path))


@pytest.mark.parametrize("lines", [[], [""], ["a", "", "ß"], ["x"] * 97])
def test_n_lines_written_are_n_lines_read(tmp_path, lines):
    path = str(tmp_path / "out.txt")
    with opened_output(path) as out:
        write_lines(out, lines)
    assert read_stdin_or_file(path) == lines


def test_stdout_gets_utf8_and_newlines_whatever_the_locale(monkeypatch):
    raw = io.BytesIO()
    narrow = io.TextIOWrapper(raw, encoding="ascii", newline="\r\n")
    monkeypatch.setattr(sys, "stdout", narrow)
    with opened_output("-") as out:
        write_lines(out, ["größe", "b"])
    assert raw.getvalue() == "größe\nb\n".encode()


def _write(path, lines):
    with opened_output(str(path)) as out:
        write_lines(out, lines)


def test_a_file_appears_only_when_it_is_complete(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old\n")

    def lines():
        yield "new"
        assert path.read_text() == "old\n"
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        _write(path, lines())
    assert path.read_text() == "old\n"
    _write(path, ["new"])
    assert path.read_text() == "new\n"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_a_device_is_written_to_and_stays_a_device(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    _write(pipe, ["a", "b"])
    assert os.read(reader, 100) == b"a\nb\n"
    os.close(reader)
    assert pipe.is_fifo()


def test_an_output_that_cannot_be_made_is_named(tmp_path):
    for path in (tmp_path / "no" / "where.txt", tmp_path):
        with pytest.raises(OutputError, match=f"--output={path} must be a file"):
            _write(path, ["a"])


@pytest.mark.parametrize("name", ["read.de", "./read.de", "link.de"])
def test_a_file_that_is_read_is_not_written_over(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "read.de").write_text("kept")
    (tmp_path / "link.de").symlink_to("read.de")
    opened = opened_output(name, flag="hypotheses", inputs=["other", "read.de"])
    with pytest.raises(OutputError, match=f"--hypotheses={name} must be another"):
        opened.__enter__()
    assert (tmp_path / "read.de").read_text() == "kept"
