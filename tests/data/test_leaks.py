import numpy as np
import pytest

from t2t_jax.data import leaks
from t2t_jax.data.config import DataConfig
from t2t_jax.data.leaks import find_leaks, leak_warning
from t2t_jax.data.token_cache import build_or_open

TRAIN = [
    ("the cat", "der Kater"),
    ("a dog", "ein Hund"),
    ("the cat", "Kater"),
    ("old tree", "der Baum"),
    ("a bird", ""),
]


@pytest.fixture
def train(text_corpus, vocabularies, tmp_path):
    corpus = text_corpus(*map(list, zip(*TRAIN, strict=True)))
    config = DataConfig(max_length=61, cache_dir=str(tmp_path / "caches"))
    return build_or_open(corpus, vocabularies, config=config)


def test_each_side_and_both_are_counted(train):
    found = find_leaks(
        train,
        [
            ("the cat", "Kater"),  # both, in line 3
            ("a cat", "der Baum"),  # its target, in line 4
            (" the cat\t", "Hund"),  # its source, but for blanks
            ("a dog", "der Kater"),  # both sides, of two pairs
            ("the Cat", "der  Kater"),  # neither
            ("a bird", "Vogel"),  # in a pair that was dropped
        ],
    )
    assert (found["source"], found["target"], found["both"]) == (3, 3, 1)
    (example,) = found["examples"]
    assert (example["line"], example["train_line"]) == (1, 3)


def test_without_a_whole_pair_lines_are_the_examples(train):
    found = find_leaks(train, [("a", "der Baum"), ("b", "Hund"), ("c", "ein Hund")])
    assert (found["source"], found["target"], found["both"]) == (0, 2, 0)
    lines = [(pair["line"], pair["train_line"]) for pair in found["examples"]]
    assert lines == [(1, 4), (3, 2)]
    assert found["examples"][0]["source"] == "a"


def test_at_most_three_examples_are_told(train):
    assert len(find_leaks(train, TRAIN[:1] * 7)["examples"]) == 3
    assert find_leaks(train, TRAIN[:1] * 7)["both"] == 7


def test_empty_lines_are_no_leak(train):
    assert find_leaks(train, [("", ""), (" ", "der Kater")])["target"] == 0


def test_it_is_what_sets_say_of_many_lines(train, monkeypatch):
    monkeypatch.setattr(leaks, "_BLOCK", 13)
    chance = np.random.default_rng(3)
    values = chance.integers(0, 1 << 63, 97, np.uint64)
    # Alike in the bits that are looked at first.
    values[1::2] = (values[::2][:48] & np.uint64(leaks._BITS)) + np.uint64(1 << 40)
    hashes, held_out = values[:71], values[31:]
    expected = np.flatnonzero(np.isin(hashes, held_out))
    assert leaks._rows_with(held_out, hashes).tolist() == expected.tolist()


def test_no_leak_is_no_warning_and_any_is_one(train):
    clean = find_leaks(train, [("a tree", "Vogel")])
    assert (clean["source"], clean["target"], clean["examples"]) == (0, 0, [])
    assert leak_warning(clean) == ""
    assert "of 5 development pairs 4 are" in leak_warning(find_leaks(train, TRAIN))
