import dataclasses

import pytest

from t2t_jax.config import Config, keys, to_dict
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
    new = dataclasses.replace(Config(), seed=11)
    (logged,) = forbidden_changes(Config(), new)
    for part in ("seed was 0", "is 11 now", "config.seed", "new workdir"):
        assert part in logged


def test_what_does_not_change_the_experiment_may_change():
    new = dataclasses.replace(
        Config(),
        steps=7,
        logging=LoggingConfig(every_steps=3),
        evaluation=EvaluationConfig(every_steps=11),
    )
    assert forbidden_changes(Config(), new) == []


def test_every_other_key_is_refused():
    before = dict(flat(to_dict(Config())))
    for key in keys():
        after = before | {key: "changed"}
        refused = [k for k in before if before[k] != after[k] and not changeable(k)]
        assert bool(refused) == (not changeable(key))
    for section in ("data", "model", "vocabulary", "optimizer", "training", "seed"):
        assert section not in CHANGEABLE_ON_RESUME


def flat(values, prefix=""):
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def changeable(key):
    return key in CHANGEABLE_ON_RESUME or key.split(".")[0] in CHANGEABLE_ON_RESUME


def test_whatever_may_change_is_a_key_or_a_section():
    known = set(keys()) | {key.split(".")[0] for key in keys()}
    assert set(CHANGEABLE_ON_RESUME) <= known


def test_every_key_has_a_reason_why_it_may_change_or_not():
    for key in keys():
        section = key.split(".")[0]
        if not changeable(key):
            assert section in FIXED_ON_RESUME, key
    assert not CHANGEABLE_ON_RESUME.keys() & FIXED_ON_RESUME.keys()


def test_an_update_may_not_begin_to_be_left_out_under_a_run():
    before, after = Config(), Config(training=TrainingConfig(skip_gradient_norm=7.0))
    (logged,) = forbidden_changes(before, after)
    assert "which updates are made" in logged
    lax = TrainingConfig(max_bad_steps=3, step_timeout=7.0, on_nonfinite="stop")
    assert forbidden_changes(before, Config(training=lax)) == []


def test_a_run_is_resumed_with_its_own_text_only():
    before = {"train": "ab", "weights of train": "1, 2"}
    check_fingerprints(before, {**before, "dev": "cd"})
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


def test_development_text_is_compared_only_where_it_is_read():
    before = {"train": "ab", "dev": "cd"}
    check_fingerprints(before, {"train": "ab"})
    check_fingerprints({"train": "ab"}, before)
    with pytest.raises(DataError, match="other content of: dev"):
        check_fingerprints(before, {"train": "ab", "dev": "ef"})
    with pytest.raises(DataError, match="other content of: train"):
        check_fingerprints(before, {"dev": "cd"})
