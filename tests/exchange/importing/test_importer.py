"""A foreign model becomes an ordinary model directory, complete or not at all.

Seen to fail: without `_check` a model with a missing array is
written; without `atomic_directory` an import that fails leaves a directory.
"""

import hashlib
import json
import os
from pathlib import Path

import pytest

import t2t_jax
from t2t_jax.errors import InputMissingError, OutputError, UserError
from t2t_jax.exchange.importing.imported import ImportOptions
from t2t_jax.exchange.importing.importer import write_imported
from tests.exchange import marian_save


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    marian_save.save(folder / "model.npz")
    (folder / "vocab.spm").write_bytes(marian_save.sentencepiece_model())
    return folder


def import_to(to, path, toolkit="", **options):
    return write_imported(path, to, toolkit=toolkit, options=ImportOptions(**options))


@pytest.fixture(scope="module")
def imported(marian, tmp_path_factory):
    to = tmp_path_factory.mktemp("imported") / "mine"
    import_to(to, marian / "model.npz")
    return to


def test_a_model_is_imported_and_loaded_by_one_call(marian, tmp_path, imported):
    model = t2t_jax.import_model(marian, tmp_path / "mine", toolkit="marian")
    outputs = model.translate(["low lower", "new"], beam_size=1, max_extra_tokens=3)
    assert (len(outputs), model.step) == (2, 0)
    words = t2t_jax.load(imported).vocabularies
    assert model.vocabularies.fingerprint == words.fingerprint
    for to, more, kind, message in (
        ("mine", {}, OutputError, "exists and is not empty"),
        ("other", {"toolkit": "onnx"}, UserError, "is not a model of marian"),
        ("other", {"options": ImportOptions(positions="hf")}, UserError, "='hf' must"),
    ):
        with pytest.raises(kind, match=message):
            t2t_jax.import_model(marian, tmp_path / to, **more)


def test_the_readme_says_where_the_model_is_from(imported, marian):
    card = (imported / "README.md").read_text()
    digest = hashlib.sha256((marian / "model.npz").read_bytes()).hexdigest()
    assert f"`{digest}`" in card
    assert "| model.start | zero |" in card
    assert "| model.activation | relu |" not in card
    origin = json.loads((imported / "model.json").read_text())["imported"]
    assert (origin["format"], origin["files"]["model.npz"]) == ("marian", digest)


@pytest.mark.parametrize("rows", [50, 5_000])
def test_a_model_with_trained_positions_of_any_number_is_imported(tmp_path, rows):
    marian_save.save(tmp_path / "model.npz", positions=rows)
    (tmp_path / "vocab.spm").write_bytes(marian_save.sentencepiece_model())
    config = import_to(tmp_path / "to", tmp_path)
    assert config.model.max_positions == rows
    assert config.data.max_length == min(256, rows)


def test_what_is_not_a_model_is_an_error(tmp_path):
    with pytest.raises(InputMissingError, match=r"Change --from"):
        import_to(tmp_path / "to", tmp_path / "missing")
    with pytest.raises(UserError, match=r"is not a model of marian"):
        import_to(tmp_path / "to", tmp_path)
    with pytest.raises(InputMissingError, match=r"config\.json: no such file"):
        import_to(tmp_path / "to", tmp_path, toolkit="hf_marian")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("marian", {"normalize": True}),
        ("hf_marian", {"vocabularies": (Path("vocab.spm"),)}),
        ("fairseq", {"positions": "marian"}),
        ("t2t", {"positions": "marian"}),
    ],
)
def test_an_option_that_a_format_lacks_is_refused(marian, tmp_path, name, options):
    (option,) = options
    with pytest.raises(UserError, match=f"^--{option} is only for "):
        import_to(tmp_path / "to", marian, toolkit=name, **options)
    assert os.listdir(tmp_path) == []


def test_a_vocabulary_that_is_missing_is_one_error(marian, tmp_path):
    with pytest.raises(InputMissingError, match=r"vocab\.smp: no such file"):
        import_to(tmp_path / "to", marian, vocabularies=(Path("vocab.smp"),))


def test_the_sums_are_those_of_the_files(imported):
    for line in (imported / "SHA256SUMS").read_text().splitlines():
        digest, _, name = line.partition("  ")
        assert hashlib.sha256((imported / name).read_bytes()).hexdigest() == digest
