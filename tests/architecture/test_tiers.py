"""Seen to fail: with a prefix of a file that is not there, and of a renamed test."""

import re
from pathlib import Path

import pytest

from tests.tiers import DEFAULT, FULL, QUICK, TIERS, tier_of

ROOT = Path(__file__).parents[2]


def test_each_prefix_names_tests_that_exist():
    unknown = []
    for prefix in TIERS:
        path, _, name = prefix.partition("::")
        text = (ROOT / path).read_text() if path.endswith(".py") else ""
        if not (ROOT / path).exists() or (name and f"\ndef {name}" not in text):
            unknown.append(prefix)
    assert unknown == []


@pytest.mark.parametrize(
    ("test", "tier"),
    [
        ("tests/cli/flags/test_parser.py::test_a", QUICK),
        ("tests/model/rnn/test_layers.py::test_a[1]", DEFAULT),
        ("tests/faults/test_kills.py::test_a", FULL),
        ("tests/faults/test_signals.py::test_each_of_the_signals_x[2]", DEFAULT),
        ("t2t_jax/model/sublayer.py::t2t_jax.model.sublayer", DEFAULT),
    ],
)
def test_the_longest_prefix_decides(test, tier):
    assert tier_of(test) == tier


def test_no_test_file_chooses_its_own_tier():
    chosen = re.compile(r"pytest\.mark\.(quick|default|full|slow)\b")
    files = (ROOT / "tests").rglob("test_*.py")
    assert [str(p) for p in files if chosen.search(p.read_text("utf-8"))] == []
