"""How commands that the program proposes begin."""

import shutil
import sys

import pytest

from t2t_jax.cli.flags.modes import command_of
from t2t_jax.cli.modes.train import _next_commands
from t2t_jax.run.workdir import Workdir

SCRIPT = "/usr/bin/t2t-jax"


@pytest.mark.parametrize(
    ("started", "begin"),
    [
        (SCRIPT, "t2t-jax translate"),
        (".venv/bin/t2t-jax", ".venv/bin/t2t-jax translate"),
        ("/x/t2t_jax/__main__.py", "python -m t2t_jax --mode=translate"),
        ("/x/t2t_jax/main.py", "python -m t2t_jax.main --mode=translate"),
        ("", "python -m t2t_jax.main --mode=translate"),
    ],
)
def test_a_proposed_command_has_the_form_of_the_one_that_was_given(
    monkeypatch, tmp_path, started, begin
):
    monkeypatch.setattr(sys, "argv", [started])
    monkeypatch.setattr(shutil, "which", lambda name: SCRIPT)
    assert " ".join(command_of("translate")) == begin
    said = _next_commands(Workdir(tmp_path))
    assert f"translate:  {begin} --workdir={tmp_path} < in.txt" in said
