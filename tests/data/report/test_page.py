import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.report.leakage import find_all_leaks
from t2t_jax.data.report.page import report_text
from t2t_jax.data.report.statistics import describe_data

CONFIG = DataConfig(tokens_per_batch=101, row_length=61, max_length=61)


@pytest.fixture
def page(vocabularies, encode):
    """Words the page of a corpus that is trained on, and of held-out ones."""

    def page(train: str, *held_out: str) -> str:
        cache = encode(train)
        leaks = find_all_leaks(cache, [open_corpus(spec) for spec in held_out])
        how = {"config": CONFIG, "train": cache, "dev": cache, "leaks": leaks}
        return report_text(describe_data(vocabularies, **how))

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


def test_a_line_of_the_corpus_is_quoted_as_it_is(page, text_corpus):
    line = "<script>alert('&')</script> \x1b[2J {{ 7 * 7 }}"
    told = page(text_corpus(["a", line], ["ein", ""]).spec)
    assert f"\n                  {line!r}\n                  ''\n" in told
    assert "\x1b" not in told
