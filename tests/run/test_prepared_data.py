import json
from pathlib import Path

import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.data.batching.modifiers import VERSION
from t2t_jax.data.batching.planner import PLAN_VERSION
from t2t_jax.data.token_cache import known_words
from t2t_jax.data.token_cache.filters import VERSION as FILTERS_VERSION
from t2t_jax.data.token_cache.known_words import KnownWords
from t2t_jax.data.vocabulary.bpe_dropout import SAMPLING_VERSION
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import ConfigError, DataError
from t2t_jax.run.prepared_data import prepare_data
from tests.integration import tiny


def _prepare(workdir: Path, **changed):
    options = parse_argv(tiny.arguments(workdir, **changed))
    options.workdir.create()
    logged: list[str] = []
    text = prepare_data(options.config, workdir=options.workdir, log=logged.append)
    return text, logged


def test_bpe_dropout_and_filters_are_fingerprints_of_their_own(tmp_path):
    text, _ = _prepare(tmp_path / "run")
    assert text.sampled_epochs(log=print) is None
    sampled, _ = _prepare(tmp_path / "two", data__source_bpe_dropout=0.1)
    assert sampled.train.fingerprint == text.train.fingerprint
    assert sampled.fingerprints.items() - text.fingerprints.items() == {
        ("way of sampling subwords", SAMPLING_VERSION)
    }
    filtered, _ = _prepare(tmp_path / "three", data__filters="digits")
    assert filtered.train.fingerprint != text.train.fingerprint
    assert filtered.fingerprints.items() - text.fingerprints.items() == {
        ("way of filtering pairs", FILTERS_VERSION)
    }


def test_modifiers_and_the_glossary_are_fingerprints(tmp_path):
    text, _ = _prepare(tmp_path / "run", data__modifiers="upper:0")
    assert text.sampled_epochs(log=print) is None
    (tmp_path / "terms").write_text("teacher\tLehrer\n", encoding="utf-8")
    how = {"data__modifiers": "words:0.1", "data__glossary": f"tsv:{tmp_path}/terms"}
    modified, _ = _prepare(tmp_path / "two", **how)
    new = dict(modified.fingerprints.items() - text.fingerprints.items())
    assert new.pop("way of modifying pairs") == VERSION
    assert [*new] == ["glossary"]
    (tmp_path / "terms").write_text("teacher\tLehrerin\n", encoding="utf-8")
    other, _ = _prepare(tmp_path / "three", **how)
    assert other.fingerprints["glossary"] != new["glossary"]
    report = (tmp_path / "two" / "data_report.txt").read_text(encoding="utf-8")
    assert "without modifiers, of shares of the pairs: words 0.1\n" in report


def test_the_development_text_has_no_weights(tmp_path):
    with pytest.raises(ConfigError, match=r"data\.dev='0\.5.* must have no weights"):
        _prepare(tmp_path / "run", data__dev="0.5*phrasebook:dev:7")


def _contents(run):
    return {path.name: path.read_bytes() for path in run.iterdir()}


def test_the_source_words_of_a_run_are_written_once(tmp_path):
    run = tmp_path / "run"
    text, _ = _prepare(run)
    known = KnownWords.load(run)
    assert known.hashes.tolist() == text.train.source_words.tolist()
    assert known.unseen_shares(["The teacher", "xylophone, 42!"]) == [0.0, 1.0]
    published = json.loads((run / "data.json").read_text(encoding="utf-8"))
    assert published["train"]["source_words"] == len(known.hashes)
    # Nothing of a run that has begun is replaced; what an older run lacks is added.
    begun = parse_argv(tiny.arguments(run))
    begun.workdir.write_config(begun.config)
    begun.workdir.write_json("fingerprints.json", text.fingerprints)
    (run / known_words.FILE).write_bytes(b"its own")
    _prepare(run)
    assert (run / known_words.FILE).read_bytes() == b"its own"
    (run / known_words.FILE).unlink()
    _prepare(run)
    assert (run / known_words.FILE).read_bytes() == known.to_bytes()


def test_two_prepared_vocabularies_are_taken_up_by_the_run(tmp_path, monkeypatch):
    own = {"vocabulary__source_size": 110, "model__tying": "decoder"}
    run = tmp_path / "run"
    first, _ = _prepare(run, **own)
    monkeypatch.setattr(VocabularyPair, "load_or_train", None)  # learns nothing
    # Whatever it does not depend on may change.
    second, _ = _prepare(run, model__d_ff=64, data__max_length=50, **own)
    assert second.vocabularies.fingerprint == first.vocabularies.fingerprint


@pytest.mark.parametrize(
    ("changed", "logged"),
    [
        ({"vocabulary__size": 140}, "config.vocabulary.size=150"),
        ({"seed": 3}, "made with seed=0, and this start has 3"),
        ({"data__train": "phrasebook:train:299"}, "on another text"),
    ],
    ids=str,
)
def test_a_vocabulary_of_other_text_or_settings_is_refused(
    tmp_path, monkeypatch, changed, logged
):
    run = tmp_path / "run"
    _prepare(run)
    before = _contents(run)
    monkeypatch.setattr(VocabularyPair, "load_or_train", None)  # learns nothing
    with pytest.raises(DataError, match=logged):
        _prepare(run, **changed)
    assert _contents(run) == before


@pytest.mark.parametrize("damage", ["data.json", "vocab.model", "exchange", "alone"])
def test_a_damaged_preparation_is_refused_and_can_be_removed(tmp_path, damage):
    run = tmp_path / "run"
    first, _ = _prepare(run)
    if damage == "exchange":
        other, _ = _prepare(tmp_path / "other", data__train="phrasebook:train:200")
        (run / "vocab.model").write_bytes(other.vocabularies.target.model)
    elif damage == "alone":
        (run / "data.json").unlink()
    else:
        (run / damage).write_text("{")
    before = _contents(run)
    with pytest.raises(DataError, match=r"vocab\.model to start over") as caught:
        _prepare(run)
    assert len(str(caught.value).splitlines()) <= 3
    assert _contents(run) == before
    (run / "vocab.model").unlink()
    assert _prepare(run)[0].fingerprints == first.fingerprints


def test_held_out_text_is_searched_for_and_changes_nothing_else(tmp_path):
    plain, _ = _prepare(tmp_path / "plain")
    test_sets = "phrasebook:train:300[7:30]++phrasebook:test:11"
    text, logged = _prepare(tmp_path / "run", data__held_out=test_sets)
    assert text.fingerprints == plain.fingerprints
    (warning,) = [line for line in logged if line.startswith("warning:")]
    assert "phrasebook:train:300[7:30]" in warning
    published = json.loads((tmp_path / "run" / "data.json").read_text(encoding="utf-8"))
    dev, *others = published["leaks"]
    assert dev == published["dev"]["spec"]
    assert others == test_sets.split("++")


def test_without_evaluation_no_development_text_is_needed_or_read(tmp_path):
    off = {"evaluation__every_steps": 0}
    plain, _ = _prepare(tmp_path / "plain")
    for number, dev in enumerate(("", "text:not.there,not.there.either")):
        run = tmp_path / f"run-{number}"
        text, logged = _prepare(run, **off, data__dev=dev)
        assert text.dev is None
        # The development text is compared only where it is read.
        assert {**plain.fingerprints, **text.fingerprints} == plain.fingerprints
        assert "dev" not in text.fingerprints
        published = json.loads((run / "data.json").read_text(encoding="utf-8"))
        assert "dev" not in published
        assert not any("dev" in line for line in logged)


def test_development_pairs_are_held_out_of_the_training_text(tmp_path):
    held = {"data__dev": "", "data__dev_pairs": 11}
    text, _ = _prepare(tmp_path / "run", **held)
    sliced, _ = _prepare(
        tmp_path / "sliced",
        data__train="phrasebook:train:300[11:]",
        data__dev="phrasebook:train:300[:11]",
    )
    assert text.fingerprints == sliced.fingerprints
    assert text.dev_lines == sliced.dev_lines
    # They stay held out where nobody evaluates: the run may be evaluated later.
    off, _ = _prepare(tmp_path / "off", **held, evaluation__every_steps=0)
    assert off.fingerprints["train"] == text.fingerprints["train"]


def test_directions_without_development_text_are_told(tmp_path):
    logged = {}
    for dev in ("en-de", "en-de,de-en"):
        changed = {
            "data__train": "phrasebook:train:99#en-de,de-en",
            "data__dev": f"phrasebook:dev:7#{dev}",
        }
        text, lines = _prepare(tmp_path / dev, **changed)
        logged[dev] = [line for line in lines if "lacks" in line]
        # Only sources with the tag of their own language change the hashes.
        assert not any("languages" in name for name in text.fingerprints)
    ((warning,), others) = logged.values()
    assert warning.startswith("The development text lacks de-en: scores")
    assert others == []


def test_other_weights_are_another_order_and_so_another_fingerprint(tmp_path):
    parts = "phrasebook:train:100++{}phrasebook:train:300[100:]"
    texts = [
        _prepare(tmp_path / "run", data__train=parts.format(weight))[0]
        for weight in ("", "1*", "2*")
    ]
    plain, one, two = (text.fingerprints for text in texts)
    assert plain == one == {**two, "weights of train": "1, 1"}
    assert two["weights of train"] == "1, 2"
    assert two["way of planning batches"] == PLAN_VERSION
    assert texts[2].train.weights == (1.0, 2.0)


def test_development_text_in_the_training_text_is_a_warning(tmp_path):
    run = tmp_path / "run"
    _, logged = _prepare(run, data__dev="phrasebook:train:300[7:30]")
    (warning,) = [line for line in logged if line.startswith("warning:")]
    assert "of the 23 pairs of phrasebook:train:300[7:30]" in warning
    published = json.loads((run / "data.json").read_text(encoding="utf-8"))
    (found,) = published["leaks"].values()
    assert found["both"] > 15
    assert len(found["examples"]) == 3
