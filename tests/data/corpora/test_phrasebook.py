import lzma
import re
from importlib import resources

import pytest

from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.corpora.phrasebook import SIZES, examples
from t2t_jax.errors import ConfigError


@pytest.mark.parametrize("rest", ["", "train:0", "x:7"])
def test_a_spec_names_split_and_count(rest):
    message = r"must be phrasebook:SPLIT:COUNT.*dev, test, train"
    with pytest.raises(ConfigError, match=message):
        open_corpus(f"phrasebook:{rest}")


@pytest.mark.parametrize("split", SIZES)
def test_more_pairs_than_there_are_are_refused_with_their_number(split):
    most = SIZES[split]
    assert open_corpus(f"phrasebook:{split}:{most}").num_pairs() == most
    message = f"has {most} pairs of {split}, not {most + 1}.*generate.py {split}"
    with pytest.raises(ConfigError, match=message):
        open_corpus(f"phrasebook:{split}:{most + 1}")


def test_the_splits_are_the_whole_file():
    pairs = [p for s, n in SIZES.items() for p in open_corpus(f"phrasebook:{s}:{n}")]
    name = resources.files("t2t_jax") / "data/corpora/phrasebook.tsv.xz"
    text = lzma.decompress(name.read_bytes()).decode()
    assert "".join(f"{source}\t{target}\n" for source, target in pairs) == text
    assert len({source for source, _ in pairs}) == sum(SIZES.values())


# Recorded when the package still derived the pairs: runs of then resume.
@pytest.mark.parametrize(
    ("rest", "begin"),
    [
        ("train:120000", "bae919be12f17b968c5123417b9e2863"),
        ("dev:500", "8a15c09011d904c3f0afd5c7c3c029bb"),
        ("test:5000", "6510cb7e8c5031d6b5e89c2686441750"),
    ],
)
def test_the_fingerprints_stay(rest, begin):
    assert open_corpus(f"phrasebook:{rest}").fingerprint().startswith(begin)


def test_every_word_of_the_examples_is_trained_on():
    train = list(open_corpus("phrasebook:train:25000"))
    assert 12 <= len(examples()) <= 20
    for side in (0, 1):
        texts = (" ".join(p[side] for p in pairs) for pairs in (examples(), train))
        shown, trained = (re.findall(r"\w+", text.casefold()) for text in texts)
        assert {*shown} <= {*trained}
    assert set(train).isdisjoint(examples())
