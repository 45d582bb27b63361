import gzip
import os
from pathlib import Path

import pytest

from t2t_jax.data.corpora import open_corpus
from t2t_jax.errors import ConfigError, DataError, InputMissingError


def _count(corpus):
    return sum(1 for _ in corpus)


def test_a_corpus_can_be_read_again_and_again(text_corpus):
    corpus = text_corpus(b"one\r\ntwo\r\nthree", "eins\nzw\u2028ei\n\n".encode())
    pairs = [("one", "eins"), ("two", "zw\u2028ei"), ("three", "")]
    assert list(corpus) == pairs
    assert list(corpus) == pairs
    assert _count(corpus) == 3


def test_gzipped_sides_read_like_plain_ones(text_corpus):
    sides = (gzip.compress(b"one\ntwo\n"), gzip.compress(b"eins\nzwei\n"))
    assert list(text_corpus(*sides, suffix=".gz")) == [("one", "eins"), ("two", "zwei")]


def test_the_fingerprint_is_of_the_content_and_its_sides(text_corpus):
    fingerprint = text_corpus(b"one\n", b"eins\n").fingerprint()
    assert text_corpus(b"one\n", b"eins\n", suffix=".txt").fingerprint() == fingerprint
    assert text_corpus(b"eins\n", b"one\n").fingerprint() != fingerprint
    assert text_corpus(b"one\n", b"zwei\n").fingerprint() != fingerprint


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_unequal_sides_are_told_with_both_counts(text_corpus, order):
    sides = (b"1\n2\n3\n", b"1\n" * 5)
    corpus = text_corpus(sides[order[0]], sides[order[1]])
    counts = [(3, 5)[side] for side in order]
    message = f"has {counts[0]} lines and .* has {counts[1]}: "
    with pytest.raises(DataError, match=message):
        _count(corpus)


def test_empty_files_are_told(text_corpus):
    with pytest.raises(DataError, match=r"source and .*target are empty\."):
        _count(text_corpus(b"", b""))


def test_problems_of_both_sides_come_together(text_corpus):
    corpus = text_corpus(b"a\n\xff\nc\nd\n", b"a\nb\n\0\n")
    with pytest.raises(DataError) as caught:
        _count(corpus)
    first, second, third = caught.value.problems
    assert "source:2: invalid UTF-8" in first
    assert "target:3: holds a NUL byte" in second
    assert "has 4 lines" in third
    assert "has 3" in third


def test_nothing_is_yielded_after_a_broken_line(text_corpus):
    corpus = iter(text_corpus(b"a\n\xff\nc\n", b"a\nb\nc\n"))
    assert next(corpus) == ("a", "a")
    with pytest.raises(DataError):
        next(corpus)


def test_a_broken_gzip_is_not_told_as_unequal_sides(text_corpus):
    whole = gzip.compress(os.urandom(999).hex().encode() + b"\n")
    corpus = text_corpus(whole[:99], gzip.compress(b"a\nb\n"), suffix=".gz")
    with pytest.raises(DataError) as caught:
        _count(corpus)
    (problem,) = caught.value.problems
    assert "broken gzip" in problem


def test_all_missing_files_are_told_on_opening(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputMissingError) as caught:
        open_corpus(f"text:{tmp_path}/absent,{tmp_path}/folder")
    first, second = caught.value.problems
    assert "absent: no such file" in first
    assert "folder: must be a file" in second


def test_home_and_variables_are_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BITEXT", "europarl")
    (tmp_path / "europarl.en").write_text("one\n")
    (tmp_path / "europarl.de").write_text("eins\n")
    corpus = open_corpus("text:~/$BITEXT.en,$HOME/${BITEXT}.de")
    assert list(corpus) == [("one", "eins")]


def test_an_unset_variable_is_named(monkeypatch):
    monkeypatch.delenv("BITEXT", raising=False)
    with pytest.raises(ConfigError, match="variable BITEXT, which is not set"):
        open_corpus("text:$BITEXT/a,b")


@pytest.mark.parametrize("spec", ["", "news.en,news.de", "texts:a,b"])
def test_an_unknown_prefix_lists_the_known_ones(spec):
    message = (
        r"data\.dev=.* must begin with one of phrasebook:, text:\. Change config\."
    )
    with pytest.raises(ConfigError, match=message):
        open_corpus(spec, key="data.dev")


@pytest.mark.parametrize("spec", ["text:", "text:a", "text:a,", "text:a,b,c"])
def test_a_text_corpus_names_two_files(spec):
    with pytest.raises(ConfigError, match="must name two files"):
        open_corpus(spec)


@pytest.mark.parametrize("rest", ["", "train", "train:", "train:0", "train:-1", "x:7"])
def test_a_phrasebook_names_split_and_count(rest):
    with pytest.raises(
        ConfigError, match=r"must be phrasebook:SPLIT:COUNT.*train, dev"
    ):
        open_corpus(f"phrasebook:{rest}")


def test_the_phrasebook_gives_what_it_is_asked_for():
    corpus = open_corpus("phrasebook:dev:13")
    pairs = list(corpus)
    assert len(set(pairs)) == 13
    assert list(corpus) == pairs
    others = {
        open_corpus(f"phrasebook:{rest}").fingerprint()
        for rest in ("dev:14", "train:13")
    }
    assert len(others | {corpus.fingerprint()}) == 3


def test_real_bitext_is_aligned():
    folder = os.environ.get("T2T_JAX_TEST_DATA")
    if not folder:
        pytest.skip("T2T_JAX_TEST_DATA does not name a folder of real text")
    english = sorted(Path(folder, "multi30k").glob("train*.en*"))
    german = sorted(Path(folder, "multi30k").glob("train*.de*"))
    assert _count(open_corpus(f"text:{english[0]},{german[0]}")) == 29_000


def test_slices_share_a_corpus_out_without_loss(tmp_path):
    (tmp_path / "a").write_text("".join(f"s{n}\n" for n in range(7)))
    (tmp_path / "b").write_text("".join(f"t{n}\n" for n in range(7)))
    whole = f"text:{tmp_path / 'a'},{tmp_path / 'b'}"
    dev, train = open_corpus(f"{whole}[:3]"), open_corpus(f"{whole}[3:]")
    assert [source for source, _ in dev] == ["s0", "s1", "s2"]
    assert [*dev, *train] == list(open_corpus(whole))
    assert list(open_corpus(f"{whole}[2:4]")) == [("s2", "t2"), ("s3", "t3")]
    prints = {c.fingerprint() for c in (dev, train, open_corpus(whole))}
    assert len(prints) == 3


def test_an_empty_slice_is_refused():
    with pytest.raises(ConfigError, match="empty slice"):
        open_corpus("phrasebook:dev:7[5:5]")


def test_a_slice_that_begins_after_the_end_says_how_long_the_corpus_is():
    with pytest.raises(DataError, match="begins after the last of 7 pairs"):
        list(open_corpus("phrasebook:dev:7[9:]"))
