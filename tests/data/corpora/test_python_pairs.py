import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.corpora.python_pairs import open_pairs
from t2t_jax.errors import DataError, InputMissingError
from t2t_jax.run.text import languages_of_spec

PAIRS = [("A dog\tbarks.", "Ein Hund\u2028bellt."), ("a\rb", "ä"), ("", "leer")]


class Tensor:
    """Text as an example of TFDS has it where TensorFlow is installed."""

    def __init__(self, text):
        self.text = text

    def numpy(self):
        return self.text.encode()


@pytest.fixture
def config(tmp_path):
    return DataConfig(cache_dir=str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("rows", "languages"),
    [
        (PAIRS, []),
        ((list(pair) for pair in PAIRS), []),
        ([(source.encode(), target.encode()) for source, target in PAIRS], []),
        ([{"id": 7, "translation": {"en": a, "de": b}} for a, b in PAIRS], ["en-de"]),
        # The first row says which is the source.
        ([{"en": "A dog\tbarks.", "de": PAIRS[0][1]}]
         + [{"de": Tensor(b), "en": Tensor(a)} for a, b in PAIRS[1:]], ["en-de"]),
        ([{"source": a, "target": b} for a, b in PAIRS], []),
    ],
    ids=["tuples", "a generator", "bytes", "Hugging Face", "tensors", "named"],
)  # fmt: skip
def test_pairs_are_those_of_files_with_these_lines(rows, languages, config, tmp_path):
    corpus = open_pairs(rows, config=config)
    assert list(corpus) == list(corpus) == PAIRS
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, side in zip(paths, zip(*PAIRS, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in side), newline="\n")
    files = open_corpus(f"text:{paths[0]},{paths[1]}")
    assert corpus.fingerprint() == files.fingerprint()
    assert open_corpus(corpus.spec) == corpus
    assert ["-".join(pair) for pair in languages_of_spec(corpus.spec)] == languages


def test_equal_pairs_are_stored_once_and_damaged_files_again(config, tmp_path):
    def store(number):
        return open_pairs(iter(PAIRS), config=config)

    with ThreadPoolExecutor() as pool:  # As processes of one machine do.
        corpora = list(pool.map(store, range(4)))
    others = open_pairs([*PAIRS, PAIRS[0]], config=config)
    assert len(set(corpora)) == 1
    assert corpora[0].source != others.source
    assert len(list((tmp_path / "cache").iterdir())) == 2
    corpora[0].source.write_text("another\n")
    assert list(store(0)) == PAIRS
    corpora[0].target.unlink()
    with pytest.raises(InputMissingError, match=r"pass its pairs to t2t_jax\.train"):
        open_corpus(corpora[0].spec)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ("text:a.en,a.de", TypeError, "not 'text:a.en,a.de'. Pass .* config.data.tra"),
        ({"train": PAIRS}, TypeError, "train must be an iterable .* not a dict"),
        (None, TypeError, "not None"),
        ([*PAIRS, "ab"], TypeError, r"train\[3\] is 'ab', and must be two texts"),
        ([("a", "b", "c")], TypeError, r"train\[0\] is \('a', 'b', 'c'\), and must"),
        ([("a", "b"), ("a", 7)], TypeError, r"train\[1\] is \('a', 7\), and must"),
        ([{"en": "a", "de": "b", "id": 1}], TypeError, r"\[0\] is {.*'id': 1.*}, and"),
        ([{"en": "a", "de": "b"}, {"en": "a"}], TypeError,
         r"train\[1\] is {'en': 'a'}, .* with the same keys in all rows\. Pass"),
        ([("a\nb", "c"), ("a", "b"), ("d", "e\r")], DataError,
         r"train\[0\]: has a line break; the same fault in 1 more line \(2\)\. Repl"),
        (iter([]), DataError, "train has no pairs"),
    ],
)  # fmt: skip
def test_what_is_no_pair_is_named_by_its_place(rows, error, message, config, tmp_path):
    with pytest.raises(error, match=message) as caught:
        open_pairs(rows, config=config, name="train")
    assert re.search(r"\.$", str(caught.value))
    assert not list((tmp_path / "cache").glob("*"))  # Nothing is left.
