"""Lines in and out.

Seen to fail: with str.splitlines (more lines), without a bound on the lines that wait,
without the loop around `out.write` (lines in part), without the lock or the `unlink`
of flush_before_exit, and where a line that waits is not seen.
"""

import gzip
import io
import os
import sys
import threading
import time
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_jax.cli.console import text_io as lines_module
from t2t_jax.cli.console.text_io import (
    flush_before_exit,
    open_output,
    read_stdin_or_file,
    write_lines,
)
from t2t_jax.cli.translation.windows import LineStream
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
        (b"a\xff\xfeb\nc\n", ["a\udcff\udcfeb", "c"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),  # one mark
        (b"a\r\nb\r\n", ["a\r", "b\r"]),
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
    with pytest.raises(DataError) as raised:
        read_stdin_or_file(str(path))
    assert str(raised.value) == (
        f"--input={path} is broken gzip: not a gzip file. Rename it without .gz, or "
        "copy it again."
    )


def test_a_missing_input_is_named(tmp_path):
    for path in (tmp_path / "nothere", tmp_path):
        with pytest.raises(InputMissingError, match=f"--input={path} must be a file"):
            read_stdin_or_file(str(path))


@pytest.mark.parametrize("lines", [[], [""], ["a", "", "ß"], ["x"] * 97])
def test_n_lines_written_are_n_lines_read(tmp_path, lines):
    path = str(tmp_path / "out.txt")
    with open_output(path) as out:
        write_lines(out, lines)
    assert read_stdin_or_file(path) == lines


def test_stdout_gets_utf8_and_newlines_whatever_the_locale(monkeypatch):
    raw = io.BytesIO()
    narrow = io.TextIOWrapper(raw, encoding="ascii", newline="\r\n")
    monkeypatch.setattr(sys, "stdout", narrow)
    with open_output("-") as out:
        write_lines(out, ["größe", "b"])
    assert raw.getvalue() == "größe\nb\n".encode()


def _write(path, lines):
    with open_output(str(path)) as out:
        write_lines(out, lines)


def test_a_file_that_cannot_be_put_in_its_place_is_named(tmp_path, monkeypatch):
    def fail(beside, place):
        raise PermissionError(13, "Permission denied", str(beside), None, str(place))

    monkeypatch.setattr("t2t_jax.cli.console.text_io.os.replace", fail)
    with pytest.raises(PermissionError) as raised:
        _write(tmp_path / "out.txt", ["new"])
    assert raised.value.filename == str(tmp_path / "out.txt")
    with pytest.raises(OutputError, match=r"/proc/out must .* directory\. Choose an"):
        _write("/proc/out", ["new"])


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
    opened = open_output(name, flag="hypotheses", inputs=["other", "read.de"])
    with pytest.raises(OutputError, match=f"--hypotheses={name} is one of the input"):
        opened.__enter__()
    assert (tmp_path / "read.de").read_text() == "kept"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([b"\n", b"\r", b"\xff", b"a", b"\xe2\x82\xa8"])))
def test_lines_that_wait_are_those_of_the_file(tmp_path_factory, parts):
    path = tmp_path_factory.getbasetemp() / "parts.txt"
    path.write_bytes(b"".join(parts))
    groups = list(LineStream(str(path), most=3))
    assert [line for group in groups for line in group] == read_stdin_or_file(str(path))
    assert all(1 <= len(group) <= 3 for group in groups)


def test_a_line_is_handed_out_before_the_next_one_comes(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    # Opened to write first, without waiting for who reads.
    kept = os.open(tmp_path / "pipe", os.O_RDWR)
    groups = iter(LineStream(str(tmp_path / "pipe"), most=7))
    for line in ("a", "", "b"):
        os.write(kept, f"{line}\n".encode())
        assert next(groups) == [line]
    os.write(kept, b"the end")
    os.close(kept)
    assert list(groups) == [["the end"]]


def test_whether_a_line_waits_is_known_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    kept = os.open(tmp_path / "pipe", os.O_RDWR)
    groups = LineStream(str(tmp_path / "pipe"), most=7)
    assert not groups.has_next()
    for part in (b"a\n", b""):  # A line, and then the end.
        if part:
            os.write(kept, part)
        else:
            os.close(kept)
        deadline = time.monotonic() + 20
        while not groups.has_next():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert list(islice(groups, 1)) == [["a"]] * bool(part)


def test_no_more_lines_are_read_than_may_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    text = b"".join(b"%d\n" % number for number in range(100_000))
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[text])
    writer.start()
    groups = iter(LineStream(str(tmp_path / "pipe"), most=7))
    found = next(groups)
    time.sleep(0.5)
    assert writer.is_alive()
    for group in groups:
        assert len(group) <= 7
        found += group
    writer.join()
    assert found == [str(number) for number in range(100_000)]


def test_what_comes_before_a_fault_is_handed_out(tmp_path):
    path = tmp_path / "in.gz"
    path.write_bytes(gzip.compress(b"a\nb\n")[:-4])
    groups = iter(LineStream(str(path), most=1))
    assert [next(groups), next(groups)] == [["a"], ["b"]]
    with pytest.raises(DataError, match=f"--input={path} is broken gzip"):
        next(groups)
    with pytest.raises(InputMissingError, match="No such file"):
        LineStream(str(tmp_path / "nothere"), most=1)


def test_a_stream_into_a_file_is_refused_and_into_a_pipe_is_not(tmp_path):
    opened = open_output(str(tmp_path / "out.txt"), streamed=True)
    with pytest.raises(OutputError, match="--stream cannot write to a file"):
        opened.__enter__()
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with open_output(str(tmp_path / "pipe"), streamed=True) as out:
        write_lines(out, ["a"])
        assert os.read(reader, 100) == b"a\n"
    os.close(reader)


def test_closed_standard_streams_are_named(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(InputMissingError, match="standard input, which is closed"):
        read_stdin_or_file("-")
    with pytest.raises(OutputError, match="standard output, which is closed"):
        open_output("-").__enter__()


class Sparing(io.BytesIO):
    """Takes three bytes at a time, as an unbuffered pipe may."""

    def write(self, data):
        return super().write(data[:3])


def test_what_is_taken_in_parts_is_written_whole():
    out = Sparing()
    write_lines(out, (str(number) for number in range(2_500)))
    assert out.getvalue() == b"".join(b"%d\n" % number for number in range(2_500))


def test_put_down_waits_for_whole_lines_and_removes_what_is_not_complete(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(lines_module, "_write_lock", threading.Lock())

    class Slow(io.BytesIO):
        def write(self, data):
            ender.start()
            time.sleep(0.3)
            return super().write(data)

        def flush(self):
            seen.append(ender.is_alive())

    def interrupted():
        with open_output(str(tmp_path / "out.txt")):
            assert len(os.listdir(tmp_path)) == 1
            write_lines(out, ["a", "b"])
            ender.join()

    ender, seen, out = threading.Thread(target=flush_before_exit), [], Slow()
    # In a process that ends, nobody comes as far as to rename it.
    with pytest.raises(FileNotFoundError):
        interrupted()
    assert seen == [True]
    assert out.getvalue() == b"a\nb\n"
    assert os.listdir(tmp_path) == []


def test_control_characters_are_escaped_on_a_terminal_and_data_elsewhere():
    class Terminal(io.BytesIO):
        def isatty(self):
            return True

    for out, expected in (
        (Terminal(), b"a\\x1b[2J\tb\n"),
        (io.BytesIO(), b"a\x1b[2J\tb\n"),
    ):
        write_lines(out, ["a\x1b[2J\tb"])
        assert out.getvalue() == expected
