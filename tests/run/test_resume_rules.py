import dataclasses
import io
import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.config import Config, keys, to_dict
from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.devices.distributed.processes import SINGLE_PROCESS
from t2t_jax.errors import ConfigError, DataError
from t2t_jax.run.resume_rules import (
    CHANGEABLE_ON_RESUME,
    FIXED_ON_RESUME,
    check_fingerprints,
    require_own_checkpoint,
)
from t2t_jax.run.start import open_shared_run
from t2t_jax.run.text import absolute_spec, with_absolute_text
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.config import OptimizerConfig
from tests.integration import tiny


def test_every_key_has_a_reason_why_it_may_change_or_not():
    for key in keys():
        section = key.split(".")[0]
        if not {key, section} & CHANGEABLE_ON_RESUME.keys():
            assert section in FIXED_ON_RESUME, key
    assert not CHANGEABLE_ON_RESUME.keys() & FIXED_ON_RESUME.keys()
    known = set(keys()) | {key.split(".")[0] for key in keys()}
    assert set(CHANGEABLE_ON_RESUME) <= known


@pytest.mark.parametrize(
    ("was", "now", "step", "begin"),
    [(100, 200, 80, None), (100, 200, 81, 80), (100, 90, 73, 72), (100, 100, 99, None)],
)
def test_the_end_of_a_schedule_changes_before_the_learning_rate_falls(
    was, now, step, begin
):
    def config(end):
        schedule = {"schedule": "warmup_stable_decay", "decay_fraction": 0.2}
        optimizer = OptimizerConfig(warmup_steps=3, decay_steps=end, **schedule)
        return dataclasses.replace(Config(), optimizer=optimizer)

    meta = {"progress": {}, "config": to_dict(config(was))}
    refused = pytest.raises(ConfigError, match=f"past step {begin}, .*decay_steps")
    with nullcontext() if begin is None else refused:
        require_own_checkpoint(Path("run"), config(now), step=step, meta=meta)


def test_a_run_is_resumed_with_its_own_text_only():
    before = {"train": "ab", "weights of train": "1, 2"}
    check_fingerprints(before, {**before, "dev": "cd"})
    check_fingerprints({**before, "dev": "cd"}, before)  # Evaluation is off.
    with pytest.raises(DataError, match=r"weights of train \(1, 2, now 1, 1\)"):
        check_fingerprints(before, {**before, "weights of train": "1, 1"})
    # The first runs with filters, and with tags and a ratio, had no such fingerprint.
    for way in ("way of filtering pairs", "way of comparing lengths"):
        now = {**before, way: "3"}
        check_fingerprints(now, now)
        with pytest.raises(DataError, match=f"other content of: {way}"):
            check_fingerprints(before, now)


def test_a_glossary_is_not_added_on_resume():
    words = DataConfig(modifiers="words:0.1")
    terms = dataclasses.replace(words, glossary="tsv:terms")
    runs = [dataclasses.replace(Config(), data=data) for data in (words, terms)]
    before, now = {"train": "ab"}, {"train": "ab", "glossary": "cd"}
    check_fingerprints(before, before, configs=(runs[0], runs[0]))
    with pytest.raises(DataError, match=r"of: glossary\.\n.* was '' and is 'tsv:terms"):
        check_fingerprints(before, now, configs=tuple(runs))
    check_fingerprints(before, now, configs=(runs[1], runs[1]))  # Of an older version.


@pytest.mark.parametrize(
    ("spec", "absolute"),
    [
        ("", ""),
        ("text:a,x/../b", "text:/d/a,/d/b"),
        ("text:a.en+b.en,a.de+b.de", "text:/d/a.en+/d/b.en,/d/a.de+/d/b.de"),
        ("tsv:a+b#3,1[:1%]", "tsv:/d/a+/d/b#3,1[:1%]"),
        ("tfds:a/de-en:train[:1%]:en-de", "tfds:a/de-en:train[:1%]:en-de"),
        (
            "0.5*tsv:a++2*phrasebook:dev:9[3:]++text:c++/a,c++/b",
            "0.5*tsv:/d/a++2*phrasebook:dev:9[3:]++text:/d/c++/a,/d/c++/b",
        ),
    ],
)
def test_paths_of_a_spec_become_absolute(spec, absolute):
    assert absolute_spec(spec, "/d") == absolute
    assert absolute_spec(absolute, "/elsewhere") == absolute


@pytest.mark.parametrize("name", ["c++", "a[1]", "$x"])
def test_below_a_directory_with_separators_nothing_changes(name):
    assert absolute_spec("text:a,b", f"/d/{name}") == "text:a,b"


def test_a_file_with_a_plus_in_its_name_stays_one(tmp_path):
    (tmp_path / "a+b").touch()
    spec = absolute_spec("text:a+b,a+b", str(tmp_path))
    assert spec == f"text:{tmp_path}/a+b,{tmp_path}/a+b"


def test_the_first_model_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = Config(init_from="runs/a", data=DataConfig(dev="tsv:a"))
    stored = with_absolute_text(config)
    assert (stored.init_from, stored.data.dev) == (
        f"{tmp_path}/runs/a",
        f"tsv:{tmp_path}/a",
    )
    assert with_absolute_text(Config()) == Config()


def _start(*argv):
    options = parse_argv([f"--workdir={argv[0]}", *argv[1:]])
    how = {"overrides": options.overrides, "processes": SINGLE_PROCESS}
    with open_shared_run(
        options.config, workdir=options.workdir, stream=io.StringIO(), **how
    ) as (text, _):
        return text


def test_a_run_is_resumed_and_read_from_any_directory(tmp_path, monkeypatch):
    # Seen to fail: with `write_config(config, overrides)` in `start._prepare`.
    home, elsewhere, run = (tmp_path / name for name in ("home", "elsewhere", "run"))
    for path in (home, elsewhere):
        path.mkdir()
    pairs = [*open_corpus("phrasebook:dev:300")]
    (home / "all.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    changed = {"data.train": "tsv:all.tsv", "data.dev": "", "data.dev_pairs": 11}
    words = tiny.arguments(run, **changed)[1:]
    monkeypatch.chdir(home)
    first = _start(run, *words)
    config = json.loads((run / "config.json").read_text())
    overrides = json.loads((run / "overrides.json").read_text())
    assert config["data"]["train"] == f"tsv:{home}/all.tsv" == overrides["data.train"]
    assert _start(run, *words).fingerprints == first.fingerprints
    monkeypatch.chdir(elsewhere)
    assert _start(run).fingerprints == first.fingerprints
    dev = Workdir(run).read_config().data.train
    assert len([*open_corpus(dev)]) == 300

    # A run that has relative paths is resumed from the directory that it began in.
    config["data"]["train"] = overrides["data.train"] = "tsv:all.tsv"
    (run / "config.json").write_text(json.dumps(config))
    (run / "overrides.json").write_text(json.dumps(overrides))
    monkeypatch.chdir(home)
    assert _start(run).fingerprints == first.fingerprints
    assert Workdir(run).read_config().data.train == f"tsv:{home}/all.tsv"
