import re

import pytest

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import DataError
from tests.data.conftest import ENGLISH, GERMAN, sentences

PAIRS = list(
    zip(sentences(ENGLISH, 97, seed=1), sentences(GERMAN, 97, seed=2), strict=True)
)


def find(said=None, *, pairs=PAIRS, **config):
    log = print if said is None else said.append
    config = VocabularyConfig(**config)
    return VocabularyPair.load_or_train(pairs, config=config, seed=0, log=log)


def test_both_sides_share_one_vocabulary_unless_configured_otherwise():
    said = []
    found = find(said, size=89)
    assert found.shared
    assert found.source.size == found.target.size == 89
    assert found.fingerprint == found.target.fingerprint
    begun, done = said
    assert begun == "Training a vocabulary of 89 subwords …"
    assert re.fullmatch(r"Trained the vocabulary in \d+\.\d s\.", done)


def test_a_source_of_its_own_learns_from_its_side_only():
    found = find(size=71, source_size=53)
    assert (found.source.size, found.target.size) == (53, 71)
    assert not found.shared
    # Neither knows the letters that only the other language writes.
    english, german = set("".join(ENGLISH)), set("".join(GERMAN))
    source, target = (set("".join(v.pieces(range(4, v.size)))) for v in found)
    assert not source & (german - english)
    assert not target & (english - german)


@pytest.mark.parametrize("sizes", [{"size": 89}, {"size": 71, "source_size": 53}])
def test_what_is_saved_is_what_is_loaded(tmp_path, sizes):
    found = find(**sizes)
    found.save(tmp_path)
    loaded = VocabularyPair.load(tmp_path, config=VocabularyConfig(**sizes))
    assert loaded.fingerprint == found.fingerprint
    assert loaded.shared == found.shared
    assert [v.size for v in loaded] == [v.size for v in found]


def test_files_are_loaded_instead_of_learning(tmp_path):
    find(size=71, source_size=53).save(tmp_path)
    said, file = [], str(tmp_path / "vocab.model")
    files = {"file": file, "source_file": str(tmp_path / "vocab_source.model")}
    again = find(said, size=71, source_size=53, **files)
    config = VocabularyConfig(size=71, source_size=53)
    assert again.fingerprint == VocabularyPair.load(tmp_path, config=config).fingerprint
    assert said == []


def test_saved_vocabularies_are_not_replaced_by_others(tmp_path):
    two = find(size=71, source_size=53)
    two.save(tmp_path)
    two.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for other in (find(size=89), find(size=71, source_size=54)):
        with pytest.raises(DataError, match="is never replaced"):
            other.save(tmp_path)
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize("unit", ["subwords", "words"])
def test_symbols_are_pieces_that_are_not_split(unit, tmp_path):
    keys = {"size": 71, "source_size": 61, "unit": unit, "source_unit": unit}
    config = VocabularyConfig(**keys, symbols=">>de<<,<x>")
    pairs = [("<x> the " + a, b) for a, b in PAIRS]
    both = find(pairs=pairs, **keys, symbols=">>de<<,<x>")
    both.check(config, name="w")
    for one in both:
        assert one.pieces([4, 5]) == [">>de<<", "<x>"]
        (ids,) = one.encode([">>de<< a <x> b"])
        assert (ids.count(4), ids.count(5)) == (1, 1)
        assert one.decode([[4, 5]])[0].replace(" ", "") == ">>de<<<x>"
    more = VocabularyConfig(**keys, symbols=">>de<<,>>fr<<")
    with pytest.raises(DataError, match="w must have '>>fr<<' of vocabulary"):
        both.check(more, name="w")
    if unit == "subwords":
        stuck, _ = both.target.encode(["a>>de<<b", ">>de<<>>de<<"])
        assert stuck.count(4) == 1


def test_a_file_without_the_symbols_is_refused(tmp_path):
    file = str(tmp_path / "vocab.model")
    with_symbols = VocabularyConfig(size=71, file=file, symbols=">>de<<")
    with pytest.raises(DataError, match=r"Change config\.vocabulary\.symbols\."):
        find(size=71).check(with_symbols, name=file)
