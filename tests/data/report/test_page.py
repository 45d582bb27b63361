import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.report.leakage import find_all_leaks
from t2t_jax.data.report.page import report_text
from t2t_jax.data.report.statistics import describe_data
from t2t_jax.data.token_cache.token_cache import build_or_open


@pytest.fixture
def page(vocabularies, tmp_path):
    """Words the page of a corpus that is trained on, and of held-out ones."""

    def page(train: str, *held_out: str) -> str:
        config = DataConfig(
            tokens_per_batch=101,
            row_length=61,
            max_length=61,
            cache_dir=str(tmp_path / "caches"),
        )
        cache = build_or_open(open_corpus(train), vocabularies, config=config)
        leaks = find_all_leaks(cache, [open_corpus(spec) for spec in held_out])
        return report_text(
            describe_data(
                vocabularies, config=config, train=cache, dev=cache, leaks=leaks
            )
        )

    return page


def test_the_page_has_all_sections(page, cache, text_corpus):
    clean = text_corpus(["nowhere"], ["nirgends"], suffix=".dev").spec
    told = page(cache.meta["spec"], clean)
    for words in ("97 subwords", "211 pairs read", "mean length", "at least"):
        assert words in told
    assert f"{len(cache.source.tokens):,}" in told
    assert f"Checked against the training text: {clean}" in told
    assert "None of its lines is in the training text." in told
    assert max(map(len, told.splitlines())) < 400


def test_the_page_quotes_what_was_dropped_and_what_is_known(page, text_corpus):
    train = text_corpus(["a", "", "the cat"], ["ein", "leer", "Kater"]).spec
    dev = text_corpus(["x", "the cat"], ["y", "Kater"], suffix=".dev").spec
    told = page(f"{train}[1:]", dev)
    assert "1 with an empty side" in told
    lines = [line.strip() for line in told.splitlines()]
    place = lines.index(f"line 2 of {train}:")
    assert lines[place + 1 : place + 3] == ["''", "'leer'"]
    assert f"1 of the 2 pairs of {dev} is in the training text. Scores" in told
    assert f"{dev}: of 2 pairs 1 is in the training text; 0 sources and 0" in told
    place = lines.index(f"line 2 of {dev}, training line 3 of {train}:")
    assert lines[place + 1 : place + 3] == ["'the cat'", "'Kater'"]


def test_a_line_of_the_corpus_is_quoted_as_it_is(page, text_corpus):
    line = "<script>alert('&')</script> \x1b[2J {{ 7 * 7 }}"
    told = page(text_corpus(["a", line], ["ein", ""]).spec)
    assert f"\n                  {line!r}\n                  ''\n" in told
    assert "\x1b" not in told


@pytest.mark.parametrize("parts", [2, 40, 43])
def test_of_many_parts_each_has_a_line(page, text_corpus, parts):
    specs = [
        text_corpus(["a"] * (number + 1), ["ein"] * (number + 1), f".{number}").spec
        for number in range(parts)
    ]
    told = page("++".join([f"2.5*{specs[0]}", *specs[1:]]))
    lines = [line for line in told.splitlines() if line.startswith("  ")]
    rows = [line for line in lines if line.endswith(tuple(specs[1:]))]
    assert len(rows) == 2 * (min(parts, 40) - 1)  # of both corpora
    weight, read, kept, source, target, name = rows[0].split()
    assert (weight, read, kept, name) == ("1", "2", "2", specs[1])
    assert int(source) % 2 == int(target) % 2 == 0
    assert min(int(source), int(target)) > 2
    assert " 2.5 " in told
    assert ("and 3 more, which data.json lists" in told) == (parts == 43)
    assert len(told.splitlines()) < 140
    assert max(map(len, told.splitlines())) < 500
