"""What `--mode=export` refuses, before it loads a model, and what its card asks for.

Seen to fail: without conditions of `export._check` and of `check_new_dir`; without
the trial of the latter, or where that leaves something; without the hint of
`export._pairs`; and in cards with fixed numbers, with a row of the text too many, and
with pairs that were not counted.
"""

import dataclasses

import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.modes import export
from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import ConfigError, InputMissingError, OutputError, UserError
from t2t_jax.run.dev_outputs import DevOutputs
from t2t_jax.run.workdir import Workdir
from tests.exchange.exporting.test_model_card import CONFIG, ORIGIN, card


def run(tmp_path, *flags, dev="phrasebook:dev:1", **settings):
    """Runs the mode in a workdir that has a configuration and nothing else."""
    made = Workdir(tmp_path / "run")
    made.create()
    made.write_config(Config(data=DataConfig(dev=dev), **settings))
    return export.run(parse_argv(["--mode=export", f"--workdir={made.path}", *flags]))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (".", r"it exists and is not empty\. Choose a new"),
        ("a file", "it exists and is not a directory"),
        ("/proc/zz", r"Cannot create --to=.*: "),
    ],
)
def test_a_place_that_cannot_be_written_is_named_at_once(tmp_path, place, message):
    (tmp_path / "a file").touch()
    with pytest.raises(OutputError, match=message):
        run(tmp_path, "--format=model_dir", f"--to={tmp_path / place}")
    assert not list((tmp_path / "run").rglob("x"))


@pytest.mark.parametrize("form", ["ctranslate2", "argos", "hf_marian", "marian"])
def test_the_recurrent_baseline_is_not_made_into_what_it_is_not(tmp_path, form):
    flags = (f"--format={form}", f"--to={tmp_path / 'x'}")
    with pytest.raises(UserError, match="architecture='rnn'"):
        run(tmp_path, *flags, dev="text:/nowhere/a,/nowhere/b", architecture="rnn")


@pytest.mark.parametrize(
    ("dev", "kind"),
    [("text:/nowhere/a.en,/nowhere/a.de", InputMissingError), ("", ConfigError)],
)
def test_a_development_text_that_is_not_here_asks_for_another(tmp_path, dev, kind):
    with pytest.raises(kind, match="Pass files with --source and --reference") as error:
        run(tmp_path, "--format=model_dir", f"--to={tmp_path / 'x'}", dev=dev)
    assert (len(error.value.problems) == 1) == (not dev)  # none of an empty key


def test_the_run_s_development_text_stands_in_for_a_lost_one(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    outputs = DevOutputs(tmp_path / "run")
    outputs.write(1, ["x"], sources=["A dog."], references=["Ein Hund."])
    options = "--mode=export", "--format=model_dir", f"--to={tmp_path / 'x'}"
    monkeypatch.setattr(export, "run", lambda options: export._pairs(options))
    spec, pairs = run(tmp_path, *options[1:], dev="text:a.en,a.de")
    assert pairs == [("A dog.", "Ein Hund.")]
    assert str(tmp_path / "run" / "dev_outputs") in spec


def test_a_card_asks_for_outputs_as_long_as_the_run_was_configured_with():
    config = dataclasses.replace(CONFIG, decoding=DecodingConfig(max_extra_tokens=7))
    assert "len(pieces) + 7, 2048)" in card("ctranslate2", config=config)


def test_a_card_names_the_text_once_and_counts_no_pairs_that_nobody_has_counted():
    corpus = {"spec": "text:a.en,a.fr", "fingerprint": "f", "pairs": None}
    text = card(origin={**ORIGIN, "data": {"train": corpus}})
    assert "| train text | `text:a.en,a.fr`, pairs not counted |" in text
    assert text.count("| train text |") == 1
