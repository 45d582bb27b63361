import json
from pathlib import Path

import pytest

from t2t_jax.cli.flags import parse_argv
from t2t_jax.errors import ConfigError, DataError, UserError
from t2t_jax.text import prepare_text
from tests.integration import tiny


def _prepare(workdir: Path, **changed):
    options = parse_argv(tiny.arguments(workdir, **changed))
    options.workdir.create()
    said: list[str] = []
    text = prepare_text(options.config, workdir=options.workdir, say=said.append)
    return text, said


def test_text_is_ready_and_told_of(tmp_path):
    text, said = _prepare(tmp_path / "run")
    assert text.vocabularies.target.size == tiny.TINY["vocabulary.size"]
    assert text.train.num_pairs + text.train.counts["too_long"] == 300
    assert len(text.dev_lines) == 11
    assert any("300 pairs read" in line for line in said)
    told = json.loads((tmp_path / "run" / "data.json").read_text(encoding="utf-8"))
    assert set(told) == {"vocabulary", "train", "dev"}


def test_the_vocabulary_of_a_failed_start_is_not_taken_up(tmp_path):
    run = tmp_path / "run"
    with pytest.raises(UserError, match="no"):
        _prepare(run, data__dev="text:no.en,no.de")
    assert not (run / "vocab.model").exists()
    first, _ = _prepare(run)
    second, _ = _prepare(run, data__train="phrasebook:train:200")
    # No run has begun, so the new text gets a vocabulary of its own.
    assert first.vocabularies.fingerprint != second.vocabularies.fingerprint


def test_the_vocabulary_of_a_run_stays_with_it(tmp_path):
    run = tmp_path / "run"
    first, _ = _prepare(run)
    begun = parse_argv(tiny.arguments(run))
    begun.workdir.write_config(begun.config)
    again, _ = _prepare(run)
    assert again.vocabularies.fingerprint == first.vocabularies.fingerprint
    assert again.fingerprints == first.fingerprints


def test_a_vocabulary_of_another_size_names_file_and_both_numbers(tmp_path):
    _prepare(tmp_path / "run")
    file = tmp_path / "run" / "vocab.model"
    with pytest.raises(DataError, match=r"vocab\.model has 150 .*size=160"):
        _prepare(tmp_path / "other", vocabulary__file=file, vocabulary__size=160)


def test_what_is_wrong_with_both_corpora_comes_together(tmp_path):
    with pytest.raises(ConfigError) as info:
        _prepare(tmp_path / "run", data__train="tsv:x", data__dev="tsv:y")
    assert len(info.value.problems) == 2
