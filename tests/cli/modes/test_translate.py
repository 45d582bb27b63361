"""TranslationJob a file by windows, with a model that is none.

Seen to fail: where a window is written when all have been read (no answer in time),
where processes do not add the number of their first line (numbers twice), and without
the warming up of a stream.
"""

import dataclasses
import os
import select
import threading
import time

import pytest

from t2t_jax.cli.console import error_report
from t2t_jax.cli.modes import translate
from t2t_jax.cli.processes import start
from t2t_jax.cli.translation import job, windows
from t2t_jax.decoding.text import translator
from t2t_jax.errors import ConfigError, DataError, UserError
from tests.cli.threads import on_all, without_devices
from tests.cli.translations import SPOKEN, TEXT, Loud, lines_of, loader, options_of
from tests.decoding import words


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
def test_terms_go_with_their_lines(place, speak, way):
    terms = ["x", "", "y z\tw", "", "", " ", "v"]
    (place / "terms").write_text("".join(f"{line}\n" for line in terms))
    speak("--output=out", "--terms=terms", *way)
    added = ["+x", "", "+y z+w", "", "", "", "+v"]
    assert lines_of("out") == [f"{s}{t}" for s, t in zip(SPOKEN, added, strict=True)]


@pytest.mark.parametrize("way", [(), ("--shards=2",)])
@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (b"a\n" * 8, "--terms must have as many lines as --input, but has 8 instead"),
        (b"a\n" * 6 + b"\xff\n", "--terms=terms, line 7: invalid UTF-8"),
    ],
)
def test_a_file_of_terms_that_does_not_fit_is_refused(
    place, speak, way, terms, message
):
    (place / "terms").write_bytes(terms)
    with pytest.raises(DataError, match=message):
        speak("--output=out", "--terms=terms", *way)
    assert "out" not in os.listdir()


@pytest.mark.parametrize("way", [(), ("--shards=2",)])
def test_all_terms_are_checked_before_the_first_line_is_translated(
    place, speak, way, monkeypatch
):
    monkeypatch.setattr(windows, "_MAX_LINES", 2)  # the last line is in window 4
    monkeypatch.setattr(job, "_LINES_PER_CHECK", 3)
    (place / "terms").write_text("a\n" * 6 + "b\tnever\n")
    loud = Loud()
    with pytest.raises(DataError, match=r"Line 7: never\."):
        speak("--output=out", "--terms=terms", *way, loud=loud)
    assert loud.calls == []
    assert "out" not in os.listdir()


def test_terms_are_for_a_search_without_another_constraint(place):
    (place / "terms").write_text("a\n" * 7)
    for flag, message in (
        ("--sample", "Terms restrict a beam search"),
        ("--config.decoding.constraint=tree", "a search has one"),
    ):
        with pytest.raises(UserError, match=message):
            translate.run(options_of("--output=out", "--terms=terms", flag))


@pytest.mark.parametrize("way", [(), ("--shards=2",)])
def test_too_few_prefixes_are_told_before_a_model_is_loaded(place, monkeypatch, way):
    (place / "begin").write_text("a\n" * 6)
    argv = ("--output=out", "--prefixes=begin", *way)
    with pytest.raises(DataError, match="has 6 instead of 7"):
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


def test_the_first_lines_are_written_early(place, speak, monkeypatch):
    """As many as fill a batch, and not ten thousand."""
    monkeypatch.setattr(windows, "_MAX_LINES", 10_000)
    (place / "in").write_text("".join(f"{n}\n" for n in range(20_000)))
    loud = speak("--output=out")
    sizes = [len(lines) for _, lines in loud.calls]
    assert sizes == [62, 248, 992, 3_968, 10_000, 4_730]
    assert lines_of("out") == [f"{n}:{n}" for n in range(20_000)]


def test_what_goes_wrong_in_a_later_window_leaves_no_file(place, speak):
    (place / "in").write_text("a\n" * 3 + "broken\n")
    with pytest.raises(KeyError):
        speak("--output=out")
    assert sorted(os.listdir()) == ["in", "run"]


class Full(Loud):
    """Has a device with room for nothing from the fifth line on."""

    def iter_translations(self, lines, *, first=0, **beside):
        if first >= 4:
            yield from words.translator().iter_translations(lines, first=first)
        yield from super().iter_translations(lines, first=first, **beside)


@pytest.mark.parametrize(
    ("way", "left"),
    [((), ["in", "run"]), (("--shards=3",), ["in", "out.shards", "run"])],
)
def test_what_does_not_fit_is_told_and_leaves_what_other_errors_leave(
    place, speak, monkeypatch, capsys, way, left
):
    def fail(*args, **how):
        raise MemoryError

    monkeypatch.setattr(translator, "chunked_search", fail)
    with pytest.raises(ConfigError) as raised:
        speak("--output=out", *way, loud=Full())
    assert error_report.report_error(raised.value) == 78
    said = capsys.readouterr().err
    assert said.startswith("error: Out of device memory for a single line")
    assert "Traceback" not in said
    assert sorted(os.listdir()) == left
    if way:
        done = [name for name in os.listdir("out.shards") if name.isdecimal()]
        assert sorted(done) == ["00000", "00001"]


@dataclasses.dataclass
class Warm(Loud):
    """Notes what it is asked for; warms up until somebody waits."""

    began: threading.Event
    asked: list
    row_growth: int = 2

    def __post_init__(self):
        super().__init__()

    def warm_up(self, is_enough):
        assert not is_enough()
        self.began.set()
        deadline = time.monotonic() + 20
        while not is_enough():
            assert time.monotonic() < deadline
        self.asked.append("enough")

    def translations(self, lines, *, first=0):
        self.asked.append(lines)
        return super().translations(lines, first=first)


def test_a_stream_warms_up_until_a_line_waits(place, speak, capsys):
    os.mkfifo(place / "in.pipe")
    pipe = os.open(place / "in.pipe", os.O_RDWR)
    warm = Warm(threading.Event(), [])

    def say_one_line():
        warm.began.wait(2)
        os.write(pipe, b"a\n")
        os.close(pipe)

    threading.Thread(target=say_one_line).start()
    speak("--stream", "--input=in.pipe", loud=warm)
    assert warm.asked == ["enough", ["a"]]
    assert capsys.readouterr().out == "0:A\n"


@pytest.fixture
def shared(place, monkeypatch):
    """Runs the mode on two processes, each with a model of its own."""
    without_devices(monkeypatch)
    monkeypatch.setattr(start, "_redirect_native_stdout", lambda: None)

    def run(*argv, parts):
        monkeypatch.setattr(
            translate, "load_job", lambda o: loader(parts[o.processes.index])(o)
        )
        # Parsed once: absl loads a configuration file into one module of the process.
        chosen = options_of("--output=out", *argv)

        def job(processes):
            return translate.run(dataclasses.replace(chosen, processes=processes))

        return on_all(job, count=2)

    return run


def test_several_processes_share_each_window(shared, capsys):
    parts = [Loud(), Loud()]
    assert shared(parts=parts) == [0, 0]
    assert lines_of("out") == SPOKEN
    assert sum(len(share) for loud in parts for _, share in loud.calls) == len(TEXT)
    assert all(len(loud.calls) > 1 for loud in parts)
    assert "Translated 7 lines in" in capsys.readouterr().err


def test_several_processes_share_prefixes(shared, place):
    (place / "begin").write_text("".join(f"{line}>\n" for line in TEXT))
    assert shared("--prefixes=begin", parts=[Loud(), Loud()]) == [0, 0]
    expected = [t and f"{t}>{s}" for t, s in zip(TEXT, SPOKEN, strict=True)]
    assert lines_of("out") == expected


def test_only_the_first_of_several_processes_reads_the_input(shared, place, capsys):
    """The others get its lines, so standard input will do."""
    read = []

    class Reader(Loud):
        def iter_translations(self, lines, *, first=0, **beside):
            read.extend(lines)
            yield from super().iter_translations(lines, first=first, **beside)

    os.mkfifo(place / "pipe")

    def write():
        (place / "pipe").write_bytes("\n".join(TEXT).encode())

    writer = threading.Thread(target=write)
    writer.start()
    assert shared("--input=pipe", parts=[Reader(), Reader()]) == [0, 0]
    writer.join()
    assert sorted(read) == sorted(TEXT)
    assert lines_of("out") == SPOKEN


def test_windows_are_padded_alike_on_all_processes(shared, place, monkeypatch):
    monkeypatch.setattr(windows, "_MAX_LINES", 10_000)
    (place / "in").write_text("".join(f"{n}\n" for n in range(2_000)))

    class Padded(Loud):
        def __init__(self):
            super().__init__()
            self.row_growths = []

        def with_row_growth(self, row_growth):
            self.row_growths.append(row_growth)
            return self

    parts = [Padded(), Padded()]
    assert shared(parts=parts) == [0, 0]
    assert [loud.row_growths for loud in parts] == [[1 << 30], [1 << 30]]
    assert lines_of("out") == [f"{n}:{n}" for n in range(2_000)]
