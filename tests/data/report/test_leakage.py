import pytest

from t2t_jax.data.corpora.open import open_corpus, open_held_out
from t2t_jax.data.report.leakage import (
    copy_warnings,
    find_all_leaks,
    find_copies,
    find_leaks,
    leak_warnings,
)

TRAIN = [
    ("the cat", "der Kater"),
    ("a dog", "ein Hund"),
    ("the cat", "Kater"),
    ("old tree", "der Baum"),
    ("a bird", ""),
]


@pytest.fixture
def write(tmp_path):
    """Writes pairs as a file of columns, and returns its name."""

    def write(name: str, pairs) -> str:
        text = "".join(f"{source} \t{target}\n" for source, target in pairs)
        (tmp_path / name).write_text(text)
        return f"tsv:{tmp_path / name}"

    return write


@pytest.fixture
def train(text_corpus, encode):
    return encode(text_corpus(*map(list, zip(*TRAIN, strict=True))))


@pytest.fixture
def find(train, write):
    """Looks pairs up."""
    return lambda pairs: find_leaks(train, open_corpus(write("held_out", pairs)))


def test_each_side_and_both_are_counted(find):
    pairs = [
        ("the cat", "Kater"),  # both, in line 3
        ("a cat", "der Baum"),  # its target, in line 4
        (" the cat", "Hund"),  # its source, but for blanks
        ("a dog", "der Kater"),  # both sides, of two pairs
        ("the Cat", "der  Kater"),  # neither
        ("a bird", "Vogel"),  # in a pair that was dropped
    ]
    found = find(pairs)
    assert (found["source"], found["target"], found["both"]) == (3, 3, 1)
    (example,) = found["examples"]
    assert (example["line"], example["train"]["line"]) == (1, 3)


def test_no_leak_is_no_warning_and_any_is_one(find):
    clean = find([("a tree", "Vogel")])
    assert (clean["source"], clean["target"], clean["examples"]) == (0, 0, [])
    assert [*leak_warnings({"tsv:a": clean})] == []
    (warning,) = leak_warnings({"tsv:a": clean, "tsv:b": find(TRAIN)})
    assert warning == (
        "warning: 4 of the 5 pairs of tsv:b are in the training text. Scores on it "
        "measure memory, too."
    )


def test_copies_are_counted_and_a_third_is_a_warning(write, encode, find):
    same = write("same", [("a cat", "a cat"), ("old", "alt"), ("the dog", " the dog")])
    fine = write("fine", [("a", "ein"), ("cat", "Kater"), ("old", "old")])
    found = find_copies(encode(f"{fine}[:2]++{same}++{fine}[1:]"))
    assert [tuple(one.values()) for one in found.values()] == [(2, 0), (3, 2), (2, 1)]
    first, _ = copy_warnings(found)
    assert f"warning: 2 of the 3 pairs of {same} (67%) have the same" in first
    assert find([("a", "b"), ("a", "a "), ("", "")])["copies"] == 1
    assert [*copy_warnings({"a": {"pairs": 10, "copies": 2}})] == []
    assert [*copy_warnings({"a": {"pairs": 0, "copies": 0}})] == []


def test_every_held_out_corpus_is_reported_by_name(train, write):
    first, second = write("2013", TRAIN[1:2]), write("2014", [("a", "x"), *TRAIN[:1]])
    tagged = f"{second}#<BT>#en-de"
    tests = open_held_out(f"{first}++2*{second}++{tagged}", log=print)
    found = find_all_leaks(train, tests)
    assert {spec: one["both"] for spec, one in found.items()} == {
        **{first: 1, second: 1, tagged: 1}
    }
