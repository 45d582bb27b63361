"""Seen to fail: with a prefix of a file that is not there, and of a renamed test."""

import re
from pathlib import Path

from tests.tiers import TIERS

ROOT = Path(__file__).parents[2]


def test_each_prefix_names_tests_that_exist():
    unknown = []
    for prefix in TIERS:
        path, _, name = prefix.partition("[")[0].partition("::")
        text = (ROOT / path).read_text() if path.endswith(".py") else ""
        if not (ROOT / path).exists() or (name and f"\ndef {name}" not in text):
            unknown.append(prefix)
    assert unknown == []


def test_no_test_file_chooses_its_own_tier():
    chosen = re.compile(r"pytest\.mark\.(quick|default|full|slow)\b")
    files = (ROOT / "tests").rglob("test_*.py")
    assert [str(p) for p in files if chosen.search(p.read_text("utf-8"))] == []
