"""A place to translate in, with a model that is none."""

import threading

import pytest

from t2t_jax.cli.console import text_io
from t2t_jax.cli.modes import translate
from t2t_jax.cli.translation import job, sharded_job
from t2t_jax.config import Config
from t2t_jax.run.workdir import Workdir
from tests.cli.translations import TEXT, Loud, loader, options_of


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Makes a run, a text, and windows of three lines; works in their directory."""
    run = Workdir(tmp_path / "run")
    run.create()
    run.write_config(Config())
    (tmp_path / "in").write_text("\n".join(TEXT) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(job, "_MAX_LINES", 3)
    monkeypatch.setattr(sharded_job, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(text_io, "_write_lock", threading.Lock())
    return tmp_path


@pytest.fixture
def speak(place, monkeypatch):
    """Runs the mode with a loud model, which it returns."""

    def run(*argv, loud=None):
        loud = loud or Loud()
        for module in (translate, sharded_job):
            monkeypatch.setattr(module, "load_job", loader(loud))
        translate.run(options_of(*argv))
        return loud

    return run
