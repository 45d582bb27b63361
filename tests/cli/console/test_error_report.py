import os
import sys

import pytest

from t2t_jax.cli.console import stderr
from t2t_jax.cli.console.stderr import report_error
from t2t_jax.devices.distributed.processes import Processes
from t2t_jax.errors import DataError
from tests.docs.commands import run
from tests.integration.tiny import ROOT


def test_every_line_of_one_of_several_processes_is_marked(monkeypatch, capsys):
    with pytest.raises(KeyError) as raised:
        {}["lost"]
    assert report_error(KeyError("lost")) == 70
    assert capsys.readouterr().err == "KeyError: 'lost'\n"
    third = Processes(index=3, count=5)
    monkeypatch.setattr(stderr, "current_processes", lambda: third)
    assert report_error(DataError(["first", "second"])) == 65
    said = capsys.readouterr().err
    assert said == "[rank 3] error: first\n[rank 3] error: second\n"
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


def test_where_another_process_has_gone_it_is_named_and_no_traceback_shown(
    monkeypatch, capsys
):
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
    done = run([sys.executable, "-c", call], ROOT, environ=environ)
    assert done.returncode == 69
    assert f"cannot use the devices of JAX_PLATFORMS={platform}" in done.stderr
    assert "Traceback" not in done.stderr


def test_other_errors_of_jax_are_internal_errors(capsys):
    assert report_error(RuntimeError("RESOURCE_EXHAUSTED: out of memory")) == 70
    assert report_error(AssertionError()) == 70
    assert "JAX_PLATFORMS" not in capsys.readouterr().err
