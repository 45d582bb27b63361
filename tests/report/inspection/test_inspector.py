"""Findings in pairs, with a scorer whose losses are given."""

from types import SimpleNamespace

import numpy as np
import pytest

from t2t_jax.data.corpora.corpus import locator
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.report.inspection import inspector
from t2t_jax.report.inspection.findings import Pair, PairFile
from t2t_jax.report.inspection.inspector import inspect, select
from t2t_jax.report.inspection.report import (
    COLUMNS,
    Report,
    kept_lines,
)
from t2t_jax.types import UNK

SPEC = "phrasebook:test:101"


class Words:
    """A vocabulary of words; `?` is unknown."""

    def encode(self, lines):
        return [[UNK if w == "?" else 7 for w in line.split()] for line in lines]


class FakeScorer:
    """Gives a pair a loss of 9 if its source is not its own, and else of 1 or more."""

    def __init__(self, pairs, losses):
        self.vocabularies = (Words(), Words())
        self._losses = dict(zip(pairs, losses, strict=True))

    def iter_scores(self, sources, targets):
        pairs = list(enumerate(zip(sources, targets, strict=True)))
        for number, pair in reversed(pairs):
            yield number, SimpleNamespace(per_token=-self._losses.get(pair, 9.0))


@pytest.fixture(autouse=True)
def opened(monkeypatch):
    """Closes the files of pairs at the end of a test."""
    files = []
    monkeypatch.setattr(
        inspector, "PairFile", lambda: files.append(PairFile()) or files[-1]
    )
    yield files
    for file in files:
        file.close()


def inspected(pairs, losses=None, **options):
    pairs = [Pair(*pair) for pair in pairs]
    # Distinct, so that ranks are unique.
    losses = losses or [1 + n / 1000 for n in range(len(pairs))]
    scorer = FakeScorer(pairs, losses)
    return inspect(enumerate(pairs), scorer=scorer, max_length=50, **options)


@pytest.fixture(scope="module")
def corpus():
    return list(open_corpus(SPEC))


@pytest.mark.parametrize(
    ("pair", "kind"),
    [
        (("", "Hallo du"), "unscored"),
        (("a " * 50, "b " * 50), "unscored"),
        (("the same", " the same"), "copy"),
        (("he ate", "er hat den Tag und die Nacht lang Kuchen"), "length_ratio"),
        (("he ate", "Он ел"), "script"),
        (("he ¿ ate", "er aß"), "rare_characters"),
        (("he ? ate", "er aß"), "unknown_tokens"),
    ],
)
def test_each_kind_is_found_in_the_planted_pair_alone(corpus, pair, kind):
    planted = [*corpus[:50], pair, *corpus[50:]]
    found = inspected(planted)
    assert kind in found.kinds(50)
    others = {n for n in range(len(planted)) if kind in found.kinds(n)} - {50}
    # Some letters of the corpus itself are in one pair only.
    assert len(others) <= (5 if kind == "rare_characters" else 0)


def test_a_duplicate_is_the_later_one_also_in_another_window(corpus, monkeypatch):
    monkeypatch.setattr("t2t_jax.report.inspection.inspector._WINDOW", 7)
    found = inspected([*corpus, corpus[3]])
    assert "duplicate" in found.kinds(len(corpus))
    assert found.counts()["duplicate"] == 1


def test_misaligned_pairs_are_those_that_another_source_suits_as_well(corpus):
    losses = [1 + n / 1000 for n in range(len(corpus))]
    losses[17], losses[23] = 9.5, 7.0
    found = inspected(corpus, losses)
    assert found.ranking()[:2].tolist() == [17, 23]
    assert "misaligned" in found.kinds(17)
    # With another source, 9 instead of 7: its own helps.
    assert found.gains[23] == pytest.approx(2.0)
    assert found.gains[17] == pytest.approx(-0.5)
    assert found.counts()["misaligned"] == 1 + (2.0 < 0.25 * 8)


def test_a_model_that_does_not_use_the_source_finds_nothing_misaligned(corpus):
    found = inspected(corpus, [9.0] * len(corpus))
    assert found.counts()["misaligned"] == 0
    assert "too little to find misaligned pairs" in found.notes[0]


def test_another_language_of_the_same_script_is_found(corpus):
    french = ("It is late.", "Où sont mes chaussures, et pourquoi as-tu froid ?")
    planted = [*corpus[:50], french, *corpus[50:]]
    losses = [1 + n / 1000 for n in range(len(planted))]
    losses[50] = 9.0
    found = inspected(planted, losses)
    assert "language" in found.kinds(50)
    assert found.counts()["language"] <= 2


def test_pairs_that_are_not_scored_come_last_and_are_never_dropped(corpus):
    found = inspected([("", "x y"), *corpus])
    assert found.ranking()[-1] == 0
    dropped = found.worst(0.99)
    assert len(dropped) == 100
    assert next(kept_lines(found, dropped, 1)) == "x y"


def report_of(pairs):
    found = inspected(pairs)
    return Report("a <b> corpus", len(pairs), found, locator(open_corpus(SPEC)))


def test_the_table_has_every_pair_and_no_field_breaks_it(corpus):
    odd = ("tab\there, back\\slash", "line\u2028end \x85 and \r too \x00")
    formulas = [("=HYPERLINK(A1)", "@SUM(1)"), ("-2+3", "+a"), ("a = b", "c@d")]
    pairs = [*corpus[:4], odd, *formulas]
    rows = [line.split("\t") for line in report_of(pairs).table()]
    assert tuple(rows[0]) == COLUMNS
    assert [len(row) for row in rows] == [len(COLUMNS)] * 9
    assert [row[0] for row in rows[1:]] == list("12345678")
    assert [row[-2:] for row in sorted(rows[1:], key=lambda row: row[2])[4:]] == [
        ["tab\\there, back\\\\slash", "line\\u2028end \\u0085 and \\r too \\u0000"],
        ["\\u003dHYPERLINK(A1)", "\\u0040SUM(1)"],
        ["\\u002d2+3", "\\u002ba"],
        ["a = b", "c@d"],
    ]
    assert not any(len("\t".join(row).splitlines()) > 1 for row in rows)


def test_the_page_is_text_only():
    attack = ("<script>alert(1)</script>", '<img src=x onerror="alert(2)"> & more')
    page = report_of([attack, ("a b", "c d")]).page()
    assert not any(markup in page for markup in ("<script>alert", "<img"))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "a &lt;b&gt; corpus" in page


@pytest.mark.parametrize(("most", "count"), [(0, 101), (7, 7), (101, 101), (500, 101)])
def test_a_sample_is_evenly_spaced(corpus, most, count):
    numbers = [n for n, _ in select(corpus, total=len(corpus), most=most)]
    assert len(numbers) == count
    gaps = set(np.diff(numbers).tolist())
    assert max(gaps) - min(gaps) <= 1
