import dataclasses

import pytest

from t2t_jax.config import Config, keys
from t2t_jax.data.config import DataConfig
from t2t_jax.errors import DataError
from t2t_jax.evaluation.config import EvaluationConfig
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.resume_rules import (
    CHANGEABLE_ON_RESUME,
    FIXED_ON_RESUME,
    check_fingerprints,
    differences,
    forbidden_changes,
)
from t2t_jax.training.config import LoggingConfig, TrainingConfig


def test_differences_are_by_key():
    old = Config()
    new = dataclasses.replace(
        old, steps=7, model=TransformerConfig(vocab_size=37_000, d_k=32)
    )
    assert differences(old, new) == [("steps", 100_000, 7), ("model.d_k", 64, 32)]
    assert differences(old, old) == []


def test_a_refused_change_names_key_old_and_new_value():
    updates = TrainingConfig(skip_gradient_norm=7.0)
    new = dataclasses.replace(Config(), seed=11, training=updates)
    logged, other = forbidden_changes(Config(), new)
    assert "which updates are made" in other
    for part in ("seed was 0", "is 11 now", "config.seed", "new workdir"):
        assert part in logged


def test_what_does_not_change_the_experiment_may_change():
    new = dataclasses.replace(
        Config(),
        steps=7,
        logging=LoggingConfig(every_steps=3),
        evaluation=EvaluationConfig(every_steps=11),
        training=TrainingConfig(max_bad_steps=3, step_timeout=7.0, on_nonfinite="stop"),
    )
    assert forbidden_changes(Config(), new) == []


def changeable(key):
    return key in CHANGEABLE_ON_RESUME or key.split(".")[0] in CHANGEABLE_ON_RESUME


def test_every_key_has_a_reason_why_it_may_change_or_not():
    for key in keys():
        section = key.split(".")[0]
        if not changeable(key):
            assert section in FIXED_ON_RESUME, key
    assert not CHANGEABLE_ON_RESUME.keys() & FIXED_ON_RESUME.keys()
    known = set(keys()) | {key.split(".")[0] for key in keys()}
    assert set(CHANGEABLE_ON_RESUME) <= known


def test_a_run_is_resumed_with_its_own_text_only():
    before = {"train": "ab", "weights of train": "1, 2"}
    check_fingerprints(before, {**before, "dev": "cd"})
    check_fingerprints({**before, "dev": "cd"}, before)  # Evaluation is off.
    with pytest.raises(DataError, match="other content of: dev"):
        check_fingerprints({**before, "dev": "cd"}, {**before, "dev": "ef"})
    with pytest.raises(DataError, match=r"other content of: train\."):
        check_fingerprints(before, {**before, "train": "ac"})
    with pytest.raises(DataError, match=r"weights of train \(1, 2, now 1, 1\)"):
        check_fingerprints(before, {**before, "weights of train": "1, 1"})


def test_changed_text_is_reported_with_the_old_and_the_new_spec():
    old = Config(data=DataConfig(train="tsv:a", dev="tsv:b"))
    new = Config(data=DataConfig(train="tsv:c", dev="tsv:b"))
    before = {"train": "ab", "weights of train": "1, 2", "dev": "cd"}
    now = {"train": "xy", "weights of train": "1", "dev": "zz"}
    with pytest.raises(DataError) as caught:
        check_fingerprints(before, now, configs=(old, new))
    assert caught.value.problems[0].splitlines()[1] == (
        "data.train was 'tsv:a' and is 'tsv:c' now. data.dev='tsv:b' is unchanged, but "
        "its content is not."
    )
    held = Config(data=DataConfig(train="tsv:a", dev_pairs=7))
    with pytest.raises(DataError, match=r"dev\.\ndata\.train='tsv:a' is unchanged"):
        check_fingerprints({"dev": "cd"}, {"dev": "ef"}, configs=(held, held))
    with pytest.raises(DataError, match=r"vocabulary\.\nRestore it"):
        check_fingerprints({"vocabulary": "a"}, {"vocabulary": "b"}, configs=(old, new))
