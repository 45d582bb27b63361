import errno
import functools
import os
import random
from pathlib import Path

import numpy as np
import pytest

from t2t_jax.data.token_cache import token_cache
from t2t_jax.data.token_cache.shards import read_record, write_record


@pytest.fixture
def caches(tmp_path):
    return tmp_path / "caches"


@pytest.fixture
def corpus(text_corpus):
    return text_corpus(["the cat", "a dog", "old tree"], ["der Kater", "Hund", "Baum"])


@pytest.fixture
def build(corpus, encode):
    return functools.partial(encode, corpus, max_length=13)


@pytest.fixture
def builds(monkeypatch):
    """Counts how often a corpus is encoded."""
    calls = []
    plain = token_cache.build_cache

    def counted(*arguments, **keys):
        calls.append(arguments)
        return plain(*arguments, **keys)

    monkeypatch.setattr(token_cache, "build_cache", counted)
    return calls


def same(one, other):
    return (
        one.meta == other.meta
        and np.array_equal(one.source.tokens, other.source.tokens)
        and np.array_equal(one.target.offsets, other.target.offsets)
    )


def test_a_corpus_is_encoded_once(build, builds, caches):
    assert same(build(), build())
    assert len(builds) == 1
    assert len(list(caches.iterdir())) == 1


def test_another_text_or_filter_is_another_cache(build, corpus):
    settings = {"max_length": 17, "max_length_ratio": 3.0}
    settings |= {"drop_copies": True, "drop_duplicates": True}
    caches = [build(), *(build(**{name: settings[name]}) for name in settings)]
    corpus.source.write_text("the cat\na dog\nold house\n")
    caches.append(build())
    assert len({cache.fingerprint for cache in caches}) == 6


def test_how_it_is_encoded_and_batched_is_not_part_of_a_cache(build, builds):
    build()
    build(workers=3, tokens_per_batch=512, row_length=64, layout="length_buckets")
    assert len(builds) == 1


def test_whatever_is_damaged_is_made_again(build, builds, caches, monkeypatch):
    # Seen to fail: without the checksum in `read_record`, for counts in meta.json.
    monkeypatch.setattr(os, "fsync", lambda file: None)  # most of the time
    whole = build()
    (place,) = caches.iterdir()
    files = {path.name: path.read_bytes() for path in place.iterdir()}
    chance = random.Random(5)
    for trial in range(120):
        name = "meta.json" if trial % 3 else chance.choice(sorted(files))
        changed = bytearray(files[name])
        for _ in range(chance.choice([1, 1, 1, 2, 8])):
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        cut = chance.randrange(len(changed))
        (place / name).unlink()  # as `whole` maps the first file
        (place / name).write_bytes(changed[:cut] if trial % 10 == 9 else changed)
        again = build()
        assert same(again, whole)
        assert again.part_pairs == whole.part_pairs
        assert {path.name: path.read_bytes() for path in place.iterdir()} == files
    assert len(builds) > 115


# The first: as "O" NumPy would take eight bytes of the file for an address.
@pytest.mark.parametrize(
    ("key", "lie"),
    [
        *(("dtype", "S1"), ("files", {"../outside": [0, 0]})),
        *(("parts", [{"counts": {"kept": 2}}]), ("parts", [])),
    ],
)
def test_a_cache_that_would_do_harm_is_made_again(build, builds, caches, key, lie):
    # Seen to fail: without TOKEN_DTYPES in `_open`, and without `safe_child_path` in
    # `is_valid`.
    build()
    (place,) = caches.iterdir()
    (caches / "outside").write_bytes(b"")
    meta = read_record(place / "meta.json")
    write_record(place / "meta.json", {**meta, key: lie})
    build()
    assert len(builds) == 2
    assert read_record(place / "meta.json") == meta


def test_a_cache_is_on_the_disk_before_it_has_its_name(build, caches, monkeypatch):
    events, sync, rename = [], os.fsync, os.rename

    def synced(file):
        events.append(Path(os.readlink(f"/proc/self/fd/{file}")).name)
        sync(file)

    def renamed(old, new):
        events.append(f"{Path(old).name} renamed")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    build()
    (place,) = caches.iterdir()
    files = sorted(path.name for path in place.iterdir())
    *before, directory, published = events[1:]  # after the shard is renamed
    assert sorted(before) == files
    assert (directory, published) == ("joined", "joined renamed")


def test_what_a_kill_left_when_the_cache_was_in_place_is_removed(build, caches):
    build()
    (place,) = caches.iterdir()
    remains = place.with_suffix(".building")
    (remains / "shard-00000").mkdir(parents=True)
    (remains / "lock").touch()
    build()
    assert list(caches.iterdir()) == [place]


def test_a_full_disk_is_reported_as_such(build, caches, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr("t2t_jax.data.token_cache.shards.join_shards", fail)
    with pytest.raises(
        OSError, match=r"the disk is full\. Free disk space, or"
    ) as caught:
        build()
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(caches))


def test_a_pair_is_found_where_it_stands_in_the_files(encode, tmp_path):
    (tmp_path / "a").write_text("cat\tKater\n\t\ndog\tHund\n")
    (tmp_path / "b").write_text("tree\tBaum\nhouse\tHaus\nbird\tVogel\n")
    a, b = f"tsv:{tmp_path}/a", f"tsv:{tmp_path}/b"
    cache = encode(f"{b}[1:]++2*{a}+{tmp_path}/b[2:5][:2]++{a}")
    places = [cache.locate(pair) for pair in range(cache.num_pairs)]
    assert places == [(b, 2), (b, 3), (a, 3), (b, 1), (a, 1), (a, 3)]
