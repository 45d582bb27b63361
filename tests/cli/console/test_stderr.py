"""Streams for people, on what cannot be written.

Seen to fail: with `io.FileIO` in the place of `_Unfailing`, those that cannot write.
"""

import io
import os
import pty
import resource
import subprocess
import sys

import pytest

from t2t_jax.cli.console.stderr import open_log
from t2t_jax.cli.console.text_io import open_output, write_lines

STREAMS = (
    "import sys; "
    "from t2t_jax.cli.console.stderr import make_stderr_robust, configure_stdout; "
    "make_stderr_robust(); configure_stdout(); "
)


def test_a_log_without_room_drops_lines_and_takes_the_next(tmp_path):
    path = tmp_path / "log"
    path.write_text("before\n")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_log(path) as log:
        print("Äpfel", file=log)
        resource.setrlimit(resource.RLIMIT_FSIZE, (14, before[1]))
        try:
            for _ in range(10_000):
                print("lost", file=log, flush=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        print("two", file=log)
    assert path.read_text(encoding="utf-8") == "before\nÄpfel\ntwo\n"


def test_where_stderr_is_closed_nothing_else_gets_its_number(tmp_path):
    opened = f"file = open({os.fspath(tmp_path / 'file')!r}, 'w'); "
    code = f"{STREAMS}{opened}sys.exit(3 if file.fileno() > 2 else 4)"
    argv = ["bash", "-c", '"$0" -c "$1" 2>&-', sys.executable, code]
    assert subprocess.run(argv, timeout=60, check=False).returncode == 3


@pytest.mark.parametrize("environ", [{"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C"}])
def test_pipes_get_utf_8_whatever_the_locale(environ):
    texts = [ascii(text) for text in ("größe 猫 \udcff \ud800", "… 猫")]
    code = "print({}); print({}, file=sys.stderr)".format(*texts)
    done = subprocess.run(
        [sys.executable, "-c", f"{STREAMS}{code}"],
        env={**os.environ, "PYTHONUTF8": "0", **environ},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "größe 猫 ".encode() + b"\xff \\ud800\n"
    assert done.stderr.decode() == "… 猫\n"


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("latin-1", "gr\u00f6\u00dfe \\u732b"), ("ascii", "gr\\xf6\\xdfe \\u732b")],
)
def test_a_terminal_gets_escapes(encoding, expected):
    leader, follower = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", f"{STREAMS}print('größe 猫'); print('größe 猫')"],
        env={**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": encoding},
        stdout=follower,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(follower)
    written = os.read(leader, 1_000).decode("latin-1").splitlines()
    os.close(leader)
    assert done.returncode == 0
    assert written == [expected] * 2


def test_translations_go_to_a_terminal_in_its_own_encoding(monkeypatch):
    raw = io.BytesIO()
    raw.isatty = lambda: True
    terminal = io.TextIOWrapper(raw, encoding="latin-1", errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", terminal)
    with open_output("-") as out:
        write_lines(out, ["größe 猫", "b"])
    assert raw.getvalue() == "größe ".encode("latin-1") + b"\\u732b\nb\n"
