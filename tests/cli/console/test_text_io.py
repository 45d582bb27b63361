"""Lines in and out.

What streams and signals do is seen in `tests/faults/test_streams.py`.

Seen to fail: with str.splitlines (more lines), without a bound on the lines that wait,
without the loop around `out.write` (lines in part), and where a line that waits is not
seen.
"""

import gzip
import io
import os
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_jax.cli.console.text_io import (
    make_directory,
    text_lines,
    write_file,
    write_lines,
)
from t2t_jax.cli.translation.job import LineStream
from t2t_jax.errors import DataError, InputMissingError


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a\n\nb\n\n", ["a", "", "b", ""]),
        (b"a\nb", ["a", "b"]),  # the last newline is missing
        ("ä\u2028b\x85c\x0bd\n".encode(), ["ä\u2028b\x85c\x0bd"]),  # one line only
        (b"a\xff\xfeb\nc\n", ["a\udcff\udcfeb", "c"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),  # one mark
        (b"a\r\nb\rc\r\n", ["a", "b\rc"]),
    ],
)
def test_only_newlines_end_a_line_and_none_is_lost(tmp_path, monkeypatch, data, lines):
    plain, zipped = tmp_path / "in.txt", tmp_path / "in.txt.gz"
    plain.write_bytes(data)
    zipped.write_bytes(gzip.compress(data))
    assert list(text_lines(str(plain))) == lines
    assert list(text_lines(str(zipped))) == lines
    with plain.open(encoding="ascii") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert list(text_lines("-")) == lines


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([b"\n", b"\r", b"\xff", b"a", b"\xe2\x82\xa8"])))
def test_lines_that_wait_are_those_of_the_file(tmp_path_factory, parts):
    path = tmp_path_factory.getbasetemp() / "parts.txt"
    path.write_bytes(b"".join(parts))
    groups = list(LineStream(str(path), most=3))
    found = [line for window in groups for line in window.lines]
    assert found == list(text_lines(str(path)))
    assert all(1 <= len(window.lines) <= 3 for window in groups)


def test_no_more_lines_are_read_than_may_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    text = b"".join(b"%d\n" % number for number in range(100_000))
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[text])
    writer.start()
    groups = iter(LineStream(str(tmp_path / "pipe"), most=7))
    found = next(groups).lines
    time.sleep(0.5)
    assert writer.is_alive()
    for window in groups:
        assert len(window.lines) <= 7
        assert window.first == len(found)
        found += window.lines
    writer.join()
    assert found == [str(number) for number in range(100_000)]


def test_what_comes_before_a_fault_is_handed_out(tmp_path):
    path = tmp_path / "in.gz"
    path.write_bytes(gzip.compress(b"a\nb\n")[:-4])
    groups = iter(LineStream(str(path), most=1))
    assert [next(groups).lines, next(groups).lines] == [["a"], ["b"]]
    with pytest.raises(DataError, match=f"--input={path}:3: broken gzip"):
        next(groups)
    with pytest.raises(InputMissingError, match="No such file"):
        LineStream(str(tmp_path / "nothere"), most=1)


class Sparing(io.BytesIO):
    """Takes three bytes at a time, as an unbuffered pipe may."""

    def write(self, data):
        return super().write(data[:3])


def test_what_is_taken_in_parts_is_written_whole():
    out = Sparing()
    write_lines(out, (str(number) for number in range(2_500)))
    assert out.getvalue() == b"".join(b"%d\n" % number for number in range(2_500))


def test_control_characters_are_escaped_on_a_terminal_and_data_elsewhere():
    class Terminal(io.BytesIO):
        def isatty(self):
            return True

    for out, escape in ((Terminal(), b"\\x1b"), (io.BytesIO(), b"\x1b")):
        write_lines(out, ["a\x1b[2J\tb"])
        assert out.getvalue() == b"a" + escape + b"[2J\tb\n"


def test_files_are_replaced_others_are_left_and_paths_are_printed(tmp_path, capsys):
    folder = make_directory(str(tmp_path / "a" / "b"))
    (folder / "mine").write_text("kept")
    for content in (b"old", "ä"):
        write_file(make_directory(str(folder)) / "theirs", content)
    assert (folder / "mine").read_text() == "kept"
    assert (folder / "theirs").read_bytes() == "ä".encode()
    assert capsys.readouterr().out == f"{folder / 'theirs'}\n" * 2
