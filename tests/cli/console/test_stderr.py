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

from t2t_jax.cli.console import stderr
from t2t_jax.cli.console.stderr import open_log, report_error
from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.devices.distributed.processes import Processes
from t2t_jax.errors import DataError
from tests.docs.commands import run
from tests.integration.tiny import ROOT

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


def test_every_line_of_one_of_several_processes_is_marked(monkeypatch, capsys):
    with pytest.raises(KeyError) as raised:
        {}["lost"]
    assert report_error(KeyError("lost")) == 70
    assert capsys.readouterr().err == "KeyError: 'lost'\n"
    third = Processes(index=3, count=5)
    monkeypatch.setattr(stderr, "current_processes", lambda: third)
    assert report_error(DataError(["first", "second"])) == 65
    assert capsys.readouterr().err == "[rank 3] error: first\n[rank 3] error: second\n"
    assert report_error(raised.value) == 70
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "[rank 3] FATAL Traceback (most recent call last):"
    assert lines[-1] == "[rank 3] KeyError: 'lost'"
    assert all(line.startswith("[rank 3] ") for line in lines)


class JaxRuntimeError(RuntimeError):
    """Bears the name of what JAX raises."""


class Two(Processes):
    """This is the first of two; `gone` are the ranks that do not answer."""

    gone = ()

    def unresponsive_ranks(self):
        return self.gone


def test_another_process_that_is_gone_is_named_without_traceback(monkeypatch, capsys):
    monkeypatch.setattr(stderr, "current_processes", lambda: Two(index=0, count=2))
    assert report_error(JaxRuntimeError("out of memory")) == 70
    assert "FATAL" in capsys.readouterr().err
    monkeypatch.setattr(Two, "gone", [1])
    assert report_error(JaxRuntimeError("Gloo AllReduce failed: reset\nmore")) == 69
    said = capsys.readouterr().err
    assert said.startswith("[rank 0] error: Process 1 of 2 has ended")
    assert "Gloo AllReduce failed: reset\n" in said
    assert "more" not in said


@pytest.mark.parametrize("platform", ["tpu", "nonsense"])
def test_devices_that_jax_cannot_use_are_no_internal_error(platform):
    code = "import jax; jax.devices()"
    call = f"from t2t_jax.cli.console.stderr import report_error\ntry:\n  {code}"
    call += "\nexcept Exception as error:\n  raise SystemExit(report_error(error))"
    environ = {**os.environ, "JAX_PLATFORMS": platform}
    done = run([sys.executable, "-c", call], ROOT, code=69, environ=environ)
    assert f"cannot use the devices of JAX_PLATFORMS={platform}" in done.stderr
    assert "Traceback" not in done.stderr


def test_other_errors_of_jax_are_internal_errors(capsys):
    assert report_error(RuntimeError("RESOURCE_EXHAUSTED: out of memory")) == 70
    assert report_error(AssertionError()) == 70
    assert "JAX_PLATFORMS" not in capsys.readouterr().err
