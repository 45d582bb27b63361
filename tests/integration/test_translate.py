"""The command line that translates: formats, samples, shards that survive, a prompt.

Seen to fail: where shards are written in place and not renamed (a half one is joined),
and where Ctrl-C at the prompt is left to the handlers of other modes (it ends at once).
"""

import codecs
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from tests.faults import running
from tests.integration import tiny

LINES = [
    "The old teacher reads a book.",
    "",
    "Two men.",
    "The old teacher reads a red book, and a child helps the famous men. " * 4,
]


@pytest.fixture
def run(tiny_run):
    return tiny_run


def translate(run, *flags, stdin=None):
    text = "\n".join(LINES) + "\n" if stdin is None else stdin
    argv = ("--mode=translate", f"--workdir={run}", *flags)
    done = tiny.succeed(*argv, stdin=text.encode())
    assert done.stdout[-1:] in (b"", b"\n")
    return done.stdout.decode().split("\n")[:-1], done.stderr.decode()


def test_everything_that_is_known_of_a_translation_is_shown(run, tmp_path):
    (tmp_path / "begin").write_text("Z\n\n\n\n")
    shown, said = translate(
        run,
        *("--format=jsonl", "--n_best=2", "--token_scores", "--alignments"),
        *(f"--prefixes={tmp_path / 'begin'}", f"--ensemble={run}", "--beam_size=3"),
    )
    rows = [json.loads(line) for line in shown]
    assert [row["line"] for row in rows] == [1, 2, 3, 4]
    assert rows[0]["translation"].startswith("Z")
    assert rows[1]["status"] == "empty"
    for row in rows:
        best, *others = row["hypotheses"]
        for name in ("translation", "score"):
            assert row[name] == best[name]
        assert len(others) == (row["status"] != "empty")
        for one in row["hypotheses"]:
            assert one["score"] <= row["score"]
            assert len(one["tokens"]) == one["num_tokens"]
            # float32 sums, of a cached and of a whole pass
            total = sum(one["token_log_probabilities"])
            assert total == pytest.approx(one["log_probability"], rel=1e-4)
            spoken = [token for token in one["tokens"] if token != "</s>"]
            targets = [target for _, target in one["alignment"]]
            assert targets == [*range(len(spoken))]
            sources = {source for source, _ in one["alignment"]}
            assert sources <= set(range(len(row["source_tokens"]) - 1))
    # The last line is longer than the model reads: it was split.
    assert rows[3]["source_tokens"].count("</s>") == 1
    assert len(rows[3]["source_tokens"]) > tiny.TINY["decoding.max_source_length"]
    assert "Translated 4 lines in" in said


def test_a_line_s_sample_is_the_same_in_a_stream_and_in_a_file(run):
    flags = ("--sample", "--format=tsv", "--top_k=40", "--n_best=3")
    twice = "\n".join(LINES * 2) + "\n"
    at_once, _ = translate(run, *flags, stdin=twice)
    streamed, _ = translate(run, *flags, "--stream", stdin=twice)
    texts, streamed_texts = (
        [(row.split("\t")[0], row.split("\t")[6]) for row in rows]
        for rows in (at_once, streamed)
    )
    assert texts == streamed_texts
    first = [text for line, text in texts if line == "1"]
    again = [text for line, text in texts if line == "5"]
    assert len({*first, *again}) == 6  # the same line with another number


def test_a_job_that_was_killed_goes_on_and_ends_as_if_it_had_not_been(run, tmp_path):
    (tmp_path / "in").write_text("".join(f"{LINES[n % 3]} {n}\n" for n in range(1_500)))
    out, shards = tmp_path / "out", tmp_path / "out.shards"
    job = (
        *("--mode=translate", f"--workdir={run}", f"--input={tmp_path / 'in'}"),
        *(f"--output={out}", "--shards=10", "--format=tsv"),
    )
    tiny.succeed(*job)
    expected = out.read_bytes()
    assert expected.count(b"\n") == 1_500
    assert not shards.exists()
    out.unlink()

    def done():
        return {name for name in os.listdir(shards) if name.endswith(".sha256")}

    made = set()
    for resume in ((), ("--resume",)):
        process = running.launch([*job, *resume])
        running.wait_for(lambda: shards.exists() and done() - made, process)  # noqa: B023
        process.send_signal(signal.SIGKILL)
        process.communicate()
        made = done()
    assert 2 <= len(made) < 10
    assert not out.exists()
    last = tiny.succeed(*job, "--resume")
    assert out.read_bytes() == expected
    # What was done is not done again.
    assert f"Translated {1_500 - 150 * len(made):,} lines".encode() in last.stderr
    assert sorted(os.listdir(tmp_path)) == ["in", "out", "out.shards.json"]


class Terminal:
    """The command line on a terminal of its own, where somebody types."""

    # The first process of a new session that opens a terminal gets its signals.
    _PROGRAM = (
        "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); "
        "argv = [sys.executable, '-m', 't2t_jax.main', *sys.argv[1:]]; "
        "os.execv(argv[0], argv)"
    )

    def __init__(self, run, home):
        self._ours, theirs = pty.openpty()
        # A bare machine, whose locale knows ASCII only.
        bare = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        own = {"XDG_STATE_HOME": str(home), "TERM": "dumb"}
        argv = ("--mode=translate", f"--workdir={run}")
        self.process = subprocess.Popen(
            [sys.executable, "-c", self._PROGRAM, *argv],
            **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
            env={**tiny.environment(), **bare, **own},
            cwd=tiny.ROOT,
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def type(self, text, *, until="\n> "):
        """Types, and returns what is shown until something comes, its own echo too."""
        # A signal that comes between the prompt and the wait for keys is seen with the
        # next key only; nobody types so soon.
        time.sleep(0.3)
        os.write(self._ours, text.encode())
        shown, deadline = "", time.monotonic() + 120
        utf_8 = codecs.getincrementaldecoder("utf-8")()  # A read may end in a letter.
        while until not in shown:
            left = max(0, deadline - time.monotonic())
            assert select.select([self._ours], [], [], left)[0], shown
            shown += utf_8.decode(os.read(self._ours, 4096))
        return shown.replace("\r", "")


def test_somebody_at_a_terminal_is_asked_and_answered(run, tmp_path):
    ((text, *_), _) = translate(run)
    with Terminal(run, tmp_path) as terminal:
        assert "Warming up" in terminal.type("")
        shown = terminal.type(f"{LINES[0]}\n")
        assert f"\n{text}\n  score -" in shown
        assert re.search(r"\d tokens, \d+ ms", shown)
        assert "n_best 3, beam_size 3" in terminal.type(":n 3\n")
        shown = terminal.type(f"{LINES[0]}\n")
        assert [f"\n  {rank}  " in shown for rank in range(1, 5)] == [1, 1, 1, 0]
        assert ":beam must be followed by a number" in terminal.type(":beam many\n")
        assert "n_best=0 must be a whole number" in terminal.type(":n 0\n")
        assert "beam_size=151 must be at most the 150" in terminal.type(":beam 151\n")
        assert ":quit" in terminal.type(":what\n")
        assert "  score -" in terminal.type("::zwei Männer\n")
        for half in ("half a line", "another half"):
            # Until it is read: the system drops what is on its way when Ctrl-C comes.
            terminal.type(half, until=half)
            assert "press Ctrl-C again" in terminal.type("\x03")
        terminal.type("\n")  # A line between two of them: nobody means to leave.
        assert "press Ctrl-C again" in terminal.type("\x03")
        terminal.type("\x03", until="\n")
        assert terminal.process.wait(timeout=240) == 0
    history = (tmp_path / "t2t_jax" / "history").read_text(encoding="utf-8")
    assert f"{LINES[0]}\n:n 3\n" in history
    assert "::zwei Männer\n" in history
