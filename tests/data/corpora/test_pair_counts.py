import gzip

import pytest

from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.corpora.pair_counts import count_pairs, estimate_pairs
from t2t_jax.data.files import line_counts
from t2t_jax.errors import ConfigError


@pytest.fixture
def corpus(tmp_path):
    """Writes two sides, the second packed, and returns how they are named."""

    def write(source: bytes, target: bytes) -> str:
        (tmp_path / "a.en").write_bytes(source)
        (tmp_path / "a.de.gz").write_bytes(gzip.compress(target))
        return f"text:{tmp_path}/a.en,{tmp_path}/a.de.gz"

    return write


def test_lines_are_counted_plain_and_packed(corpus):
    spec = corpus(b"one\ntwo\n\n", b"eins\nzwei\n\n")
    assert count_pairs(spec, key="data.train") == (spec, 3, "")


def test_a_last_line_without_an_end_counts(corpus):
    assert count_pairs(corpus(b"a\nb", b"c\nd\n"), key="data.dev").pairs == 2


def test_a_line_ends_nowhere_but_at_lf(corpus):
    spec = corpus("a\u2028b\x0bc\rd\n".encode(), b"e\n")
    assert count_pairs(spec, key="data.dev").pairs == 1


@pytest.mark.parametrize(
    ("part", "pairs"), [("[2:]", 3), ("[:2]", 2), ("[1:99]", 4), ("[7:]", 0)]
)
def test_of_a_slice_its_own_pairs_are_counted(corpus, part, pairs):
    spec = corpus(b"a\n" * 5, b"b\n" * 5) + part
    assert count_pairs(spec, key="data.train").pairs == pairs


def test_the_embedded_corpus_is_as_large_as_configured():
    assert count_pairs("phrasebook:dev:17", key="data.dev").pairs == 17


def test_sides_that_differ_are_reported(corpus):
    found = count_pairs(corpus(b"a\nb\n", b"c\n"), key="data.train")
    assert found.pairs is None
    assert "2 lines" in found.note
    assert "has 1:" in found.note


@pytest.mark.parametrize(("source", "target"), [(23, 2), (2, 23)])
def test_no_more_than_the_budget_is_read(corpus, source, target):
    spec = corpus(b"a\n" * source, b"b\n" * target)
    found = count_pairs(spec, key="data.train", budget=40)
    assert found.pairs is None
    assert "over 40 bytes" in found.note


def test_files_that_are_not_there_are_named(tmp_path):
    found = count_pairs(f"text:{tmp_path}/no.en,{tmp_path}/no.de", key="data.train")
    assert found.pairs is None
    assert f"{tmp_path}/no.en: no such file" in found.note
    assert f"{tmp_path}/no.de: no such file" in found.note


def test_a_broken_file_is_no_crash(corpus, tmp_path):
    spec = corpus(b"a\n", b"b\n")
    (tmp_path / "a.de.gz").write_bytes(b"no gzip at all")
    assert "broken gzip" in count_pairs(spec, key="data.train").note


def test_no_corpus_is_not_an_error_and_an_unknown_kind_is_one():
    assert "data.train is empty" in count_pairs("", key="data.train").note
    with pytest.raises(ConfigError, match="must begin with one of"):
        count_pairs("txt:a,b", key="data.train")


def test_a_number_is_estimated_of_every_kind_of_corpus(tmp_path, monkeypatch):
    foretold = {"a.en": (1000, False), "b.tsv": (7, True)}
    monkeypatch.setattr(
        "t2t_jax.data.corpora.pair_counts.estimate_lines",
        lambda path: line_counts.Count(*foretold[path.name]),
    )
    for name in ("a.en", "a.de", "b.tsv"):
        (tmp_path / name).write_text("x\ty\n")
    text, tsv = f"text:{tmp_path}/a.en,{tmp_path}/a.de", f"tsv:{tmp_path}/b.tsv"
    found = {
        text: (1000, False),
        f"{text}[3:]": (997, False),
        f"{text}[:20]": (20, False),
        tsv: (7, True),
        f"{tsv}[9:]": (0, True),
        f"{tsv}++3*{text}[500:]": (507, False),
        "phrasebook:dev:5": (5, True),
    }
    assert {spec: estimate_pairs(open_corpus(spec)) for spec in found} == found
