import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from t2t_jax.data import token_cache
from t2t_jax.data.corpora import TextCorpus
from t2t_jax.data.token_cache import build_or_open, cache_home
from t2t_jax.errors import DataError, OutputError


@pytest.fixture
def caches(tmp_path):
    return tmp_path / "caches"


@pytest.fixture
def corpus(text_corpus):
    return text_corpus(["the cat", "a dog", "old tree"], ["der Kater", "Hund", "Baum"])


@pytest.fixture
def build(corpus, vocabularies, caches):
    return lambda: build_or_open(corpus, vocabularies, max_length=13, cache_dir=caches)


@pytest.fixture
def writes(monkeypatch):
    """Counts how often a corpus is encoded."""
    calls = []
    write = token_cache.write_tokens

    def counted(*arguments, **keys):
        calls.append(arguments)
        write(*arguments, **keys)

    monkeypatch.setattr(token_cache, "write_tokens", counted)
    return calls


def same(one, other):
    return (
        one.meta == other.meta
        and np.array_equal(one.source.tokens, other.source.tokens)
        and np.array_equal(one.target.offsets, other.target.offsets)
    )


def test_a_corpus_is_encoded_once(build, writes, caches):
    assert same(build(), build())
    assert len(writes) == 1
    assert len(list(caches.iterdir())) == 1


def test_another_text_vocabulary_or_length_is_another_cache(
    build, corpus, vocabularies, caches
):
    first = build().fingerprint
    longer = build_or_open(corpus, vocabularies, max_length=17, cache_dir=caches)
    corpus.source.write_text("the cat\na dog\nold house\n")
    assert len({first, longer.fingerprint, build().fingerprint}) == 3


@pytest.mark.parametrize("damage", ["truncate", "remove", "garble", "other", "list"])
def test_a_damaged_cache_is_made_again(build, writes, caches, damage):
    first = build()
    tokens, offsets = first.source.tokens.copy(), first.target.offsets.copy()
    (place,) = caches.iterdir()
    meta = (place / "meta.json").read_text()
    if damage == "truncate":
        os.truncate(place / "target.tokens", 2 * len(first.target.tokens) - 2)
    elif damage == "remove":
        (place / "source.offsets").unlink()
    else:
        content = {"garble": meta[:50], "other": "{}", "list": "[]"}[damage]
        (place / "meta.json").write_text(content)
    second = build()
    assert len(writes) == 2
    assert second.source.tokens.tolist() == tokens.tolist()
    assert second.target.offsets.tolist() == offsets.tolist()
    assert list(caches.iterdir()) == [place]


def test_of_two_processes_at_once_the_first_wins(
    build, corpus, vocabularies, caches, writes, monkeypatch
):
    theirs = []

    def slow(self):
        pairs = read(self)
        if not theirs:
            theirs.append(None)
            theirs[0] = build()
        return pairs

    read = TextCorpus.__iter__
    monkeypatch.setattr(TextCorpus, "__iter__", slow)
    ours = build()
    assert len(writes) == 2
    assert same(ours, theirs[0])
    assert len(list(caches.iterdir())) == 1


def test_a_killed_process_leaves_no_cache_and_its_remains_go_in_time(
    build, corpus, caches, vocabularies, tmp_path
):
    vocabularies.save(tmp_path)
    program = f"""
import os, signal
from t2t_jax.data import encoding, token_cache
from t2t_jax.data.corpora import open_corpus
from t2t_jax.data.vocabularies import Vocabularies
encoding._SideWriter.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
token_cache.build_or_open(
    open_corpus({corpus.spec!r}), Vocabularies.load({str(tmp_path)!r}),
    max_length=13, cache_dir={str(caches)!r})
"""
    told = subprocess.run([sys.executable, "-c", program], check=False)
    assert told.returncode == -signal.SIGKILL
    (remains,) = caches.iterdir()
    assert build().num_pairs == 3
    assert remains.exists()  # it might have been at work still
    for path in (remains, *remains.iterdir()):
        os.utime(path, (0, 0))
    (place,) = set(caches.iterdir()) - {remains}
    (place / "meta.json").unlink()
    assert build().num_pairs == 3
    assert list(caches.iterdir()) == [place]


def test_an_error_leaves_nothing_behind(corpus, build, caches):
    corpus.target.write_bytes(b"\xff\n")
    with pytest.raises(DataError, match="target:1: invalid UTF-8"):
        build()
    assert list(caches.iterdir()) == []


def test_a_place_that_cannot_be_written_is_told(corpus, vocabularies, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"Change config\.data\.cache_dir\."):
        build_or_open(corpus, vocabularies, max_length=13, cache_dir=tmp_path / "file")


def test_caches_live_in_the_users_cache_home(
    corpus, vocabularies, monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    build_or_open(corpus, vocabularies, max_length=13)
    assert len(list((tmp_path / "xdg" / "t2t_jax").iterdir())) == 1
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_home() == Path.home() / ".cache" / "t2t_jax"
