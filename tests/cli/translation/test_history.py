"""What was typed, kept for the next start.

Seen to fail: with the modes left to the umask, without the bound on the lines, where an
error that is none is let through, and where a signal loses what was typed. Either of
`os.open` and `touch` makes the file before it is made private, so no test sees which.
"""

import sys

import pytest

from t2t_jax.cli.translation import repl
from t2t_jax.cli.translation.repl import current_input, history_path, readline_history

readline = pytest.importorskip("readline")


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    readline.clear_history()
    yield tmp_path / "state"
    readline.clear_history()


def test_lines_are_kept_for_the_next_start_and_for_nobody_else(state):
    with readline_history():
        readline.add_history("Zwei Männer.")
    file = state / "t2t_jax" / "history"
    assert "Zwei Männer." in file.read_text(encoding="utf-8")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (
        0o600,
        0o700,
    )
    readline.clear_history()
    with readline_history():
        assert readline.get_history_item(1) == "Zwei Männer."


@pytest.mark.parametrize("mode", [None, 0o644])
def test_a_readline_that_keeps_nothing_private_is_helped(state, monkeypatch, mode):
    def write(place):
        assert place.stat().st_mode & 0o777 == 0o600  # before anything is in it
        place.write_text("x")

    monkeypatch.setattr(readline, "write_history_file", write)
    file = state / "t2t_jax" / "history"
    if mode:
        file.parent.mkdir(parents=True)
        file.touch(mode)
    with readline_history():
        pass
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("x", 0o600)


def test_of_many_lines_the_newest_are_kept(state, monkeypatch):
    monkeypatch.setattr(repl, "_HISTORY_LINES", 2)
    with readline_history():
        for line in "abc":
            readline.add_history(line)
    assert (state / "t2t_jax" / "history").read_text().split() == ["b", "c"]


def test_a_conversation_that_a_signal_ends_is_kept_too(state):
    readline.add_history("a")
    with pytest.raises(KeyboardInterrupt), readline_history():
        raise KeyboardInterrupt
    assert (state / "t2t_jax" / "history").read_text().split() == ["a"]


def test_what_cannot_be_kept_is_no_error(state):
    state.write_text("in the way")
    with readline_history():
        readline.add_history("x")
    assert state.read_text() == "in the way"


def test_without_readline_lines_are_read_all_the_same(monkeypatch, state):
    assert current_input() == ""
    monkeypatch.setitem(sys.modules, "readline", None)
    assert current_input() == ""
    with readline_history():
        pass
    assert not state.exists()


def test_a_home_that_is_no_path_is_not_used():
    place = history_path({"XDG_STATE_HOME": "relative"})
    assert place.parts[-4:] == (".local", "state", "t2t_jax", "history")
