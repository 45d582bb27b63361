"""Vocabularies and settings beside Marian's models.

Seen to fail: without the comparison of pieces, of sizes, and of special ids.
"""

import pytest
import sentencepiece

from t2t_jax.exchange.importing.imported import ImportOptions
from t2t_jax.exchange.importing.marian import is_marian, read_marian
from t2t_jax.types import BOS, PAD, UNK
from tests.exchange import marian_save
from tests.exchange.hf_directory import pieces
from tests.exchange.importing.imported_config import as_search

pytest.importorskip("yaml")


@pytest.fixture(scope="module")
def spm():
    return marian_save.sentencepiece_model()


@pytest.fixture
def folder(tmp_path, spm):
    marian_save.save(tmp_path / "model.npz")
    (tmp_path / "vocab.spm").write_bytes(spm)
    return tmp_path


def read(path, **options):
    return read_marian(path, ImportOptions(**options))


def write_list(path, names):
    lines = [f'"{piece}": {number}\n' for number, piece in enumerate(names)]
    path.write_text("".join(lines))


def test_a_vocabulary_is_found_beside_the_model(folder, spm):
    found = read(folder)
    assert found.vocabularies.shared
    assert found.config["vocabulary.size"] == 26
    assert "vocabulary.source_size" not in found.config
    assert [path.name for path in found.files] == ["model.npz", "vocab.spm"]
    foreign = sentencepiece.SentencePieceProcessor(model_proto=spm)
    ids = found.vocabularies.source.encode(["the newest lid"])[0]
    assert ids == [number + 2 for number in foreign.encode("the newest lid")]


def test_settings_of_the_decoder_are_read(folder):
    (folder / "vocab.spm").rename(folder / "my.spm")
    (folder / "model.npz.decoder.yml").write_text(
        "vocabs:\n  - /somewhere/my.spm\n  - /somewhere/my.spm\n"
        "beam-size: 6\nnormalize: 0.6\nword-penalty: 2\nmax-length-factor: 2.5\n"
        "allow-unk: true\n"
    )
    found = read(folder)
    search = as_search(beam_size=6, length_penalty=0.6, max_length_ratio=2.5)
    assert found.search.items() >= {**search, "decoding.allow_unk": True}.items()
    assert found.notes == ("word-penalty=2 is left out.",)


def test_a_list_of_pieces_is_split_by_the_models_of_each_side(folder, spm):
    (folder / "vocab.spm").unlink()
    joint = ["</s>", "<unk>", ">>de<<", *reversed(pieces(spm)[3:])]
    write_list(folder / "opus.vocab.yml", joint)
    (folder / "source.spm").write_bytes(spm)
    (folder / "target.spm").write_bytes(marian_save.sentencepiece_model(21))
    found = read(folder)
    assert found.config["vocabulary.shared_ids"]
    ids = found.vocabularies.source.encode([">>de<< the new"])[0]
    assert ids[0] == 4
    assert UNK not in ids
    assert found.vocabularies.target.decode([ids[1:]]) == ["the new"]


def test_a_list_without_a_splitter_takes_pieces(folder, spm):
    (folder / "vocab.spm").unlink()
    write_list(folder / "vocab.yml", pieces(spm))
    found = read(folder)
    assert found.notes == ("Text must be given in the pieces of its vocabulary.",)
    assert found.vocabularies.source.encode([" ".join(pieces(spm)[5:8])]) == [[7, 8, 9]]


def test_positions_may_be_those_of_hugging_face(folder):
    assert read(folder).config["model.position_rates"] == "tensor2tensor"
    found = read(folder, positions="huggingface")
    assert found.config["model.position_rates"] == "paper"
    assert "not as Marian" in found.notes[0]


def test_what_marian_lacks_takes_no_probability_without_a_bias_either(folder):
    marian_save.save(folder / "model.npz", **{"output-omit-bias": True})
    bias = read(folder).params["embedding"]["bias"]
    assert [number for number, one in enumerate(bias) if one] == [PAD, BOS]


def test_several_models_in_a_folder_are_not_one(folder):
    assert is_marian(folder)
    (folder / "model.npz").rename(folder / "model.best.npz")
    assert is_marian(folder)
    marian_save.save(folder / "model.iter100.npz")
    assert not is_marian(folder)
