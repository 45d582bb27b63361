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
    assert open_corpus(f"phrasebook:{split}:{SIZES[split]}").num_pairs() == SIZES[split]
    more = SIZES[split] + 1
    message = f"has {SIZES[split]} pairs of {split}, not {more}.*generate.py {split}"
    with pytest.raises(ConfigError, match=message):
        open_corpus(f"phrasebook:{split}:{more}")


def test_the_splits_are_the_whole_file():
    pairs = [p for s, n in SIZES.items() for p in open_corpus(f"phrasebook:{s}:{n}")]
    name = resources.files("t2t_jax") / "data/corpora/phrasebook.tsv.xz"
    text = lzma.decompress(name.read_bytes()).decode()
    assert "".join(f"{source}\t{target}\n" for source, target in pairs) == text
    assert len({source for source, _ in pairs}) == sum(SIZES.values())


# Recorded when the package still derived the pairs: runs of then resume.
@pytest.mark.parametrize(
    ("rest", "fingerprint"),
    [
        (
            "train:120000",
            "bae919be12f17b968c5123417b9e2863ac52fba95b1d78e0208dd4d6036c7dbe",
        ),
        ("dev:500", "8a15c09011d904c3f0afd5c7c3c029bb8e5b0fdb396346dc901db9d8c25bebf7"),
        (
            "test:5000",
            "6510cb7e8c5031d6b5e89c2686441750fb5811df671bd22a40f0072d73246de5",
        ),
    ],
)
def test_the_fingerprints_stay(rest, fingerprint):
    assert open_corpus(f"phrasebook:{rest}").fingerprint() == fingerprint


def test_every_word_of_the_examples_is_trained_on():
    train = list(open_corpus("phrasebook:train:25000"))
    assert 12 <= len(examples()) <= 20
    for side in (0, 1):
        trained = _words(pair[side] for pair in train)
        assert not _words(example[side] for example in examples()) - trained
    assert set(train).isdisjoint(examples())


def _words(sentences):
    return {w for text in sentences for w in re.findall(r"\w+", text.casefold())}
