"""Whatever bytes the command line reads: every line of them has its answer.

What the model makes of any line is `test_decoded_lines.py`'s.
"""

import pytest

from tests.faults import running
from tests.faults.test_decoded_lines import LINE_ENDS
from tests.integration import tiny

BYTES = [
    *(b"", b" \t ", b"\r", "🙂".encode(), b"\xff\xfe", b"a\xe2\x82", b"<s> </s>"),
    *(b"a\tb", "a\u2028b\x85c".encode(), b"a\0b", b"The old teacher reads a book."),
    *(b"the " * 5_000, b"Two men.", b"", b"A child helps."),
]


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "run"
    running.finish(path, steps=2, vocabulary__byte_fallback=True, vocabulary__size=400)
    return path


def translated(workdir, data, *flags):
    done = tiny.succeed("--mode=translate", f"--workdir={workdir}", *flags, stdin=data)
    assert b"Traceback" not in done.stderr
    assert done.stdout[-1:] == b"\n"
    return done.stdout.decode().split("\n")[:-1]


def test_the_command_line_answers_every_line_whatever_it_is(workdir, tmp_path):
    ended = translated(workdir, b"\n".join(BYTES) + b"\n")
    assert len(ended) == len(BYTES)
    assert [ended[number] for number in (0, 1, 2, 13)] == [""] * 4
    assert len(set(ended)) > 5
    assert not any(LINE_ENDS.search(line) for line in ended)

    # The last newline is missing, and lines end as on Windows.
    assert translated(workdir, b"\r\n".join(BYTES), "--stream") == ended
    place = tmp_path / "out.de"
    (tmp_path / "in.en").write_bytes(b"\n".join(BYTES[::-1]) + b"\n")
    argv = (f"--workdir={workdir}", f"--input={tmp_path / 'in.en'}")
    done = tiny.succeed("--mode=translate", *argv, f"--output={place}")
    assert done.stdout == b""
    assert place.read_text(encoding="utf-8").split("\n")[:-1] == ended[::-1]


def test_columns_hold_every_line_whatever_it_is(workdir):
    shown = ("--format=tsv", "--n_best=2", "--token_scores", "--alignments")
    found = translated(workdir, b"\n".join(BYTES) + b"\n", *shown)
    rows = [row.split("\t") for row in found]
    assert {len(row) for row in rows} == {11}
    assert {row[0] for row in rows if row[2] == "empty"} >= {"1", "2", "3", "14"}
    assert {row[0] for row in rows if row[2] == "invalid_utf8"} == {"5", "6", "10"}
    expected = []
    for number in range(1, len(BYTES) + 1):
        (status,) = {row[2] for row in rows if row[0] == str(number)}
        # Of a line that is invalid throughout nothing is left to translate.
        nothing = status == "empty" or BYTES[number - 1] == b"\xff\xfe"
        ranks = ["1"] if nothing else ["1", "2"]
        expected += [(str(number), rank) for rank in ranks]
    assert [(row[0], row[1]) for row in rows] == expected
    assert len(rows) > len(BYTES)
    for row in rows:
        assert len(row[7].split()) == len(row[8].split()) == int(row[5])
