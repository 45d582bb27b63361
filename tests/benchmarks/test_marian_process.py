"""What is read of Marian's log, and when its process computes; Marian is made up.

Seen to fail: without the first update of a round left out, without the stop at the end
of a round, with what was written before the stop left for the next round, and with the
labels of the first count of a line instead of the update's.
"""

from pathlib import Path

import pytest
from marian_process import MarianTraining, Update, parse_update

LINE = (
    "[2026-11-23 09:53:27] Ep. 1 : Up. 2 : Sen. 256 : Cost 9.30387592 * 4,096 @ 2,047 "
    "after 4,095 : Time 3.05s : 672.18 words/s : gNorm 2.4553"
)

PROGRAM = """
import sys, time

def log(text):
    print(f"[2026-11-23 09:53:20] {text}", file=sys.stderr)

sys.stderr = open(2, "w", buffering=65536)
log("[config] sync-sgd: " + str("--sync-sgd" in sys.argv[1:]).lower())
if "--fail" in sys.argv:
    log("[data] There is no such file")
    sys.exit(7)
log("Training started")
sys.stderr.flush()
for number in range(1, 2000):
    time.sleep(PAUSE)
    log(
        f"Ep. 1 : Up. {number} : Sen. {number} : Cost 9.1 * {number} @ {number} after "
        f"1 : Time 0.02s : {100 * number}.50 words/s : gNorm 2.4"
    )
    if "--burst" not in sys.argv or number % 10 == 0:
        sys.stderr.flush()
"""


@pytest.mark.parametrize(
    ("line", "update"),
    [
        (LINE, Update(number=2, tokens=2047, rate=672.18)),
        (LINE.replace("9.30387592", "-nan"), Update(2, 2047, 672.18)),
        (LINE + " : L.r. 1.0000e-04", Update(2, 2047, 672.18)),
        (LINE.replace("Up. 2 ", "Up. 12345 "), Update(12345, 2047, 672.18)),
        ("[2026-11-23 09:53:20] [memory] Reserving 28 MB, device cpu0", None),
        ("[2026-11-23 09:53:20] [config] disp-freq: 1u", None),
        ("Ep. 1 : Up. 2 : valid : cross-entropy : 9.1 : new best", None),
        ("", None),
    ],
)
def test_a_line_of_an_update_tells_its_target_tokens(line, update):
    assert parse_update(line) == update


@pytest.fixture
def marian(tmp_path, monkeypatch):
    """Returns what starts a made-up Marian with a pause before each update."""
    package, started = tmp_path / "pymarian", []
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def start(*options, pause=0.05):
        program = PROGRAM.replace("PAUSE", str(pause))
        (package / "__main__.py").write_text(program, encoding="utf-8")
        started.append(MarianTraining(options))
        return started[-1]

    yield start
    for training in started:
        training.close()


def test_whole_updates_are_timed_and_their_tokens_counted(marian):
    training = marian("--sync-sgd")
    first, tokens = training.train(updates=1)
    assert (tokens, training.made) == (1, 1)
    seconds, tokens = training.train(updates=3)
    # The second update was under way when the process was stopped.
    assert tokens == 3 + 4 + 5
    assert seconds > 3 * 0.05 * 0.9
    assert training.rates == [100.5, 300.5, 400.5, 500.5]
    assert first > 0
    assert training.peak_megabytes() > 1


def test_a_round_of_seconds_ends_with_an_update(marian):
    training = marian()
    training.train(updates=1)
    seconds, tokens = training.train(seconds=0.2)
    assert seconds >= 0.2
    assert tokens == sum(range(3, training.made + 1))


def test_it_stands_still_between_rounds(marian):
    training = marian("--burst", pause=0.0)
    status = Path(f"/proc/{training._process.pid}/status")
    for number in (1, 2):
        training.train(updates=5)
        assert "State:\tT (stopped)" in status.read_text(encoding="utf-8")
        # Of what is logged ten by ten, all that was logged belongs to this round.
        assert training.made % 10 == 0
        assert len(training.rates) == 5 * number


def test_the_end_of_the_log_of_one_that_fails_is_shown(marian):
    with pytest.raises(ValueError, match=r"(?s)ended with code 7.*no such file"):
        marian("--fail")
