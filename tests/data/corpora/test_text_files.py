import gzip
import subprocess
from pathlib import Path

import pytest

from t2t_jax.data.corpora.corpus import parts_of
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.corpora.text_files import undo_joins
from t2t_jax.data.files.lines import read_lines
from t2t_jax.errors import DataError
from tests.exchange.real_models import real_file


@pytest.fixture
def write(tmp_path):
    """Writes a file, packed where its name says so, and returns its path."""

    def write(name: str, text: bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return path

    return write


def test_a_corpus_can_be_read_again_and_again(text_corpus):
    corpus = text_corpus(b"one\r\ntwo\r\nthree", "eins\nzw\u2028ei\n\n".encode())
    pairs = [("one", "eins"), ("two", "zw\u2028ei"), ("three", "")]
    assert list(corpus) == list(corpus) == pairs
    assert corpus.num_pairs() == 3


def test_the_fingerprint_is_of_the_content_and_its_sides(text_corpus):
    fingerprint = text_corpus(b"one\n", b"eins\n").fingerprint()
    assert text_corpus(b"one\n", b"eins\n", suffix=".txt").fingerprint() == fingerprint
    assert text_corpus(b"eins\n", b"one\n").fingerprint() != fingerprint
    assert text_corpus(b"one\n", b"zwei\n").fingerprint() != fingerprint


def test_home_and_variables_are_expanded(write, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BITEXT", "europarl")
    write("europarl.en", b"one\n")
    write("europarl.de", b"eins\n")
    write("europarl.tsv", b"two\tzwei\n")
    corpus = open_corpus("text:~/$BITEXT.en,$HOME/${BITEXT}.de")
    assert list(corpus) == [("one", "eins")]
    assert list(open_corpus("tsv:~/$BITEXT.tsv")) == [("two", "zwei")]


def test_several_files_are_aligned_two_by_two(write):
    a, b = write("a.en", b"one\ntwo\n"), write("b.en.gz", b"three\n")
    c, d = write("a.de", b"eins\nzwei\n"), write("b.de", b"drei\n")
    corpus = open_corpus(f"text:{a}+{b},{c}+{d}")
    assert list(corpus) == [("one", "eins"), ("two", "zwei"), ("three", "drei")]
    specs = [part.corpus.spec for part in parts_of(corpus)]
    assert specs == [f"text:{a},{c}", f"text:{b},{d}"]
    # In sum there are as many lines on both sides, and yet they are not aligned.
    with pytest.raises(DataError, match=r"a\.en has 2 lines and .*b\.de has 1: "):
        list(open_corpus(f"text:{a}+{b},{d}+{c}"))


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.tsv.gz"])
def test_the_columns_of_a_line_are_its_sides(write, name):
    path = write(name, b"one\teins\tun\r\ntwo\tzwei\tdeux")
    corpus = open_corpus(f"tsv:{path}")
    assert list(corpus) == [("one", "eins"), ("two", "zwei")]
    assert corpus.num_pairs() == 2
    chosen = open_corpus(f"tsv:{path}#3,1")
    assert list(chosen) == [("un", "one"), ("deux", "two")]
    assert chosen.fingerprint() != corpus.fingerprint()


def test_lines_of_too_few_columns_are_listed(write):
    path = write("pairs.tsv", b"one\teins\nalone\n\ntwo\tzwei\n\xff\t\n")
    pairs = iter(open_corpus(f"tsv:{path}"))
    assert next(pairs) == ("one", "eins")
    with pytest.raises(DataError) as caught:
        next(pairs)
    columns, invalid = caught.value.problems
    assert "pairs.tsv:2: has 1 of the 2 columns" in columns
    assert "the same fault in 1 more line (3)." in columns
    assert "pairs.tsv:5: invalid UTF-8" in invalid


@pytest.mark.parametrize(
    ("line", "joined"),
    [
        ("ein fahr@@ rad@@ weg", "ein fahrradweg"),
        ("am en@@ d@@", "am end"),
        ("am en@@ ", "am en"),
        ("a @@ b", "a b"),
        ("a@@b @ @@@ c", "a@@b @ @c"),
        ("@@@@ ", "@@"),  # as sed's: what a removal leaves is not searched again
        ("@@", ""),
        ("", ""),
    ],
)
def test_joins_of_subwords_are_undone_as_sed_does(line, joined):
    assert undo_joins(line, "@@") == joined
    sed = ["sed", "-r", "s/(@@ )|(@@ ?$)//g"]
    done = subprocess.run(sed, input=line.encode(), stdout=subprocess.PIPE, check=True)
    assert done.stdout.decode() == joined
    assert undo_joins(line, "") == line


@pytest.mark.parametrize("kind", ["text", "tsv"])
def test_a_corpus_of_subwords_is_one_of_words(write, kind):
    source, target = write("a.gz", b"th@@ ey r@@ un@@\n"), write("b", b"s@@ ie\n")
    columns = write("c.tsv", b"th@@ ey r@@ un@@\ts@@ ie\n")
    spec = f"text:{source},{target}" if kind == "text" else f"tsv:{columns}"
    corpora = [open_corpus(spec, joiner=joiner) for joiner in ("@@", "", "&&")]
    assert list(corpora[0]) == [("they run", "sie")]
    assert list(corpora[1]) == [("th@@ ey r@@ un@@", "s@@ ie")]
    assert corpora[0].num_pairs() == 1
    assert len({corpus.fingerprint() for corpus in corpora}) == 3
    sliced = open_corpus(f"2*{spec}[:1]++phrasebook:dev:3", joiner="@@")
    assert next(iter(sliced)) == ("they run", "sie")


def test_joins_of_the_real_test_are_undone_to_its_reference():
    name = "multi30k_bpe/{}.de.gz"
    subwords = real_file(name.format("test.2016"))
    reference = real_file(name.format("test_2016_flickr.lc.norm.tok"))
    corpus = open_corpus(f"text:{subwords},{subwords}", joiner="@@")
    assert [target for _, target in corpus] == list(read_lines(reference))
