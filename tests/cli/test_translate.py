"""Translating a file by windows, with a model that is none.

Seen to fail: where a window is written when all have been read (no answer in time), and
where processes do not add the number of their first line (numbers twice).
"""

import dataclasses
import os
import select
import threading

import pytest

from t2t_jax.cli import translate
from t2t_jax.errors import DataError
from t2t_jax.parallelism import gathering
from tests.cli.threads import on_all
from tests.cli.translations import SPOKEN, TEXT, Loud, lines_of, loader, options_of


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
def test_prefixes_go_with_their_lines(place, speak, way):
    (place / "begin").write_text("".join(f"{line}>\n" for line in TEXT))
    speak("--output=out", "--prefixes=begin", *way)
    expected = [t and f"{t}>{s}" for t, s in zip(TEXT, SPOKEN, strict=True)]
    assert lines_of("out") == expected


@pytest.mark.parametrize("way", [(), ("--shards=2",)])
def test_too_few_prefixes_are_told_before_a_model_is_loaded(place, monkeypatch, way):
    (place / "begin").write_text("a\n" * 6)
    argv = ("--output=out", "--prefixes=begin", *way)
    with pytest.raises(DataError, match="has 6 beside 7"):
        translate.run(options_of(*argv))
    assert "out" not in os.listdir()


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


def test_what_goes_wrong_in_a_later_window_leaves_no_file(place, speak):
    (place / "in").write_text("a\n" * 3 + "broken\n")
    with pytest.raises(KeyError):
        speak("--output=out")
    assert sorted(os.listdir()) == ["in", "run"]


def test_several_processes_share_each_window(place, monkeypatch):
    barrier, laid, parts = threading.Barrier(2, timeout=20), {}, [Loud(), Loud()]

    def gather(texts, processes):
        laid[processes.index] = texts
        barrier.wait()
        both = [laid[0], laid[1]]
        barrier.wait()
        return both

    monkeypatch.setattr(gathering, "gather_texts", gather)
    monkeypatch.setattr(translate, "reserve_stdout", lambda processes: None)

    monkeypatch.setattr(
        translate, "load_translating", lambda o: loader(parts[o.processes.index])(o)
    )

    def job(processes):
        chosen = options_of("--output=out")
        return translate.run(dataclasses.replace(chosen, processes=processes))

    assert on_all(job, count=2) == [0, 0]
    assert lines_of("out") == SPOKEN
    assert sum(len(share) for loud in parts for _, share in loud.calls) == len(TEXT)
