import pytest

from t2t_jax.data.corpora.corpus import locator
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.errors import DataError


@pytest.fixture
def two(tmp_path):
    """Writes two files of columns and returns how they are named together."""

    def write(first: bytes, second: bytes, weight: str = "") -> str:
        for name, text in (("a", first), ("b", second)):
            (tmp_path / name).write_bytes(text)
        return f"tsv:{tmp_path}/a++{weight}tsv:{tmp_path}/b"

    return write


def test_the_fingerprint_is_of_the_pairs_and_their_order_and_of_no_weight(two):
    def fingerprint(*written):
        return open_corpus(two(*written)).fingerprint()

    one = fingerprint(b"a\tb\n", b"c\td\n")
    assert fingerprint(b"a\tb\n", b"c\td\n", "2.5*") == one
    assert fingerprint(b"c\td\n", b"a\tb\n") != one
    assert fingerprint(b"a\tb\n", b"c\te\n") != one


def test_a_slice_reports_that_the_sides_of_its_base_are_not_equally_long(tmp_path):
    (tmp_path / "a").write_text("s\n" * 7)
    (tmp_path / "b").write_text("t\n" * 5)
    pairs = open_corpus(f"text:{tmp_path}/a,{tmp_path}/b[1:3]")
    with pytest.raises(DataError, match=r"a has 7 lines and .*b has 5"):
        list(pairs)


def test_a_location_is_a_line_of_the_part_that_a_pair_comes_from():
    dev, test, train = "phrasebook:dev:7", "phrasebook:test:5", "phrasebook:train:11"
    locate = locator(open_corpus(f"{dev}[3:]++2*{test}++{train}[2:9]"))
    found = [(place.corpus, place.line) for place in map(locate, (1, 4, 5, 9, 10, 16))]
    assert found == [(dev, 4), (dev, 7), (test, 1), (test, 5), (train, 3), (train, 9)]
