"""TranslationJob a file by windows, with a model that is none.

Seen to fail: where a window is written when all have been read (no answer in time),
where processes do not add the number of their first line (numbers twice), and without
the warming up of a stream.
"""

import dataclasses
import os
import select
import threading

import pytest

from t2t_jax.cli import processes as start
from t2t_jax.cli.modes import translate
from t2t_jax.cli.translation import job
from t2t_jax.errors import DataError, UserError
from tests.cli.threads import on_all, without_devices
from tests.cli.translations import SPOKEN, TEXT, Loud, lines_of, loader, options_of
from tests.waiting import wait_for


@pytest.mark.parametrize("way", [(), ("--shards=2",), ("--shards=9",)])
def test_lines_come_in_order_with_their_numbers(place, speak, way, capsys):
    speak("--output=out", *way)
    assert lines_of("out") == SPOKEN
    record = ["out.shards.json"] if way else []
    assert sorted(os.listdir()) == ["in", "out", *record, "run"]
    said = capsys.readouterr()
    assert said.out == ""
    assert "Translated 7 lines in" in said.err
    assert "1 empty." in said.err


@pytest.mark.parametrize("way", [(), ("--shards=2",)])
def test_prefixes_and_terms_go_with_their_lines(place, speak, way):
    (place / "begin").write_text("".join(f"{line}>\n" for line in TEXT))
    terms = ["x", "", "y z\tw", "", "", " ", "v"]
    (place / "terms").write_text("".join(f"{line}\n" for line in terms))
    speak("--output=out", "--prefixes=begin", "--terms=terms", *way)
    added = ["+x", "", "+y z+w", "", "", "", "+v"]
    assert lines_of("out") == [
        t and f"{t}>{s}{a}" for t, s, a in zip(TEXT, SPOKEN, added, strict=True)
    ]


@pytest.mark.parametrize("way", [(), ("--shards=2",)])
@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (b"a\n" * 8, "--terms must have as many lines as --input, but has 8 instead"),
        (b"a\n" * 6, "--terms must have as many lines as --input, but has 6 instead"),
        (b"a\n" * 6 + b"\xff\n", "--terms=terms:7: invalid UTF-8"),
        (b"a\n" * 6 + b"b\tnever\n", r"Line 7: never\."),
    ],
)
def test_a_file_of_terms_that_does_not_fit_is_refused_before_the_first_line(
    place, speak, way, terms, message, monkeypatch
):
    monkeypatch.setattr(job, "_LINES_PER_CHECK", 3)
    (place / "terms").write_bytes(terms)
    loud = Loud()
    with pytest.raises(DataError, match=message):
        speak("--output=out", "--terms=terms", *way, loud=loud)
    assert loud.calls == []
    assert "out" not in os.listdir()


def test_terms_are_for_a_search_without_another_constraint(place):
    (place / "terms").write_text("a\n" * 7)
    for flag, message in (
        ("--sample", "Terms are a constraint of a beam search"),
        ("--config.decoding.constraint=tree", "a search has one"),
    ):
        with pytest.raises(UserError, match=message):
            translate.run(options_of("--output=out", "--terms=terms", flag))


@pytest.mark.parametrize("way", [(), ("--shards=2",), ("--stream", "--output=-")])
def test_words_in_subwords_are_joined(place, speak, way):
    (place / "in").write_text("ein hu@@ nd\nzwei\n")
    loud = speak("--output=out", "--config.data.subword_joiner=@@", *way)
    assert sorted(line for _, lines in loud.calls for line in lines) == [
        "ein hund",
        "zwei",
    ]


def test_a_window_is_written_before_the_next_one_is_there(place, speak):
    for name in ("in.pipe", "out.pipe"):
        os.mkfifo(place / name)
    # Opened without waiting for the other side.
    give, take = (os.open(name, os.O_RDWR) for name in ("in.pipe", "out.pipe"))

    def answer():
        assert select.select([take], [], [], 20)[0], "nothing is written"
        return os.read(take, 1_000).decode()

    argv = ("--input=in.pipe", "--output=out.pipe")
    job = threading.Thread(target=speak, args=argv, daemon=True)
    job.start()
    for first in (0, 3):
        os.write(give, b"x\ny\nz\n")
        assert answer() == "".join(f"{first + n}:{t}\n" for n, t in enumerate("XYZ"))
    os.write(give, b"end")
    os.close(give)
    assert answer() == "6:END\n"
    job.join(timeout=20)
    assert not job.is_alive()
    os.close(take)


class Warm(Loud):
    """Warms up until a line waits, and then adds "enough" to its calls."""

    row_growth = 2

    def __init__(self):
        super().__init__()
        self.began = threading.Event()

    def warm_up(self, is_enough):
        assert not is_enough()
        self.began.set()
        wait_for(is_enough)
        self.calls.append("enough")


def test_a_stream_warms_up_until_a_line_waits(place, speak, capsys):
    os.mkfifo(place / "in.pipe")
    pipe = os.open(place / "in.pipe", os.O_RDWR)
    warm = Warm()

    def say_one_line():
        warm.began.wait(2)
        os.write(pipe, b"a\n")
        os.close(pipe)

    threading.Thread(target=say_one_line).start()
    speak("--stream", "--input=in.pipe", loud=warm)
    assert warm.calls == ["enough", (0, ["a"])]
    assert capsys.readouterr().out == "0:A\n"


def test_several_processes_share_windows_and_what_goes_with_their_lines(
    place, capsys, monkeypatch
):
    """The first alone reads the input, so standard input will do."""
    without_devices(monkeypatch)
    monkeypatch.setattr(start, "_redirect_native_stdout", lambda: None)
    parts = [Loud(), Loud()]
    monkeypatch.setattr(
        translate, "load_job", lambda o: loader(parts[o.processes.index])(o)
    )
    (place / "begin").write_text("".join(f"{line}>\n" for line in TEXT))
    os.mkfifo(place / "pipe")
    content = "\n".join(TEXT).encode()
    writer = threading.Thread(target=(place / "pipe").write_bytes, args=[content])
    writer.start()
    # Parsed once: absl loads a configuration file into one module of the process.
    chosen = options_of("--output=out", "--input=pipe", "--prefixes=begin")

    def job(processes):
        return translate.run(dataclasses.replace(chosen, processes=processes))

    on_all(job, count=2)
    writer.join()
    read = [line for loud in parts for _, lines in loud.calls for line in lines]
    assert sorted(read) == sorted(TEXT)
    assert all(len(loud.calls) > 1 for loud in parts)
    expected = [t and f"{t}>{s}" for t, s in zip(TEXT, SPOKEN, strict=True)]
    assert lines_of("out") == expected
    assert "Translated 7 lines in" in capsys.readouterr().err
