import json

import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.source_lines import SourceLines, Spread, measure_source_lines
from t2t_jax.data.token_cache.token_cache import build_or_open
from t2t_jax.errors import DataError


def _count_sentences(line):
    return line.count("the")


@pytest.fixture
def measure(text_corpus, vocabularies, tmp_path):
    def run(sources):
        corpus = text_corpus(sources, ["Hund"] * len(sources))
        config = DataConfig(max_length=61, cache_dir=str(tmp_path / "caches"))
        cache = build_or_open(corpus, vocabularies, config=config)
        source = vocabularies.source
        return measure_source_lines(cache, source, count_sentences=_count_sentences)

    return run


def test_source_lines_are_measured(measure, vocabularies):
    lines = [f"{'the ' * number}dog" for number in (1, 7, 3, 100)]
    longest = len(vocabularies.source.encode([lines[1]])[0])
    # The line of 100 is longer than data.max_length: the model does not see it.
    assert measure(lines) == SourceLines(Spread(longest, longest), Spread(7, 7))


def test_an_entry_is_read_as_it_was_written(tmp_path):
    lines = SourceLines(Spread(31, 53), Spread(1, 3))
    assert SourceLines.load(tmp_path) is None
    for name in ("data.json", "model.json"):
        content = {"source_lines": lines.to_json()}
        (tmp_path / name).write_text(json.dumps(content))
        assert SourceLines.load(tmp_path) == lines
        (tmp_path / name).write_text("{}")  # as of an older run
        assert SourceLines.load(tmp_path) is None


@pytest.mark.parametrize("subwords", [[5, 3], [-1, 3], [1], "13", [1.5, 2], [True, 2]])
def test_a_damaged_entry_is_named(tmp_path, subwords):
    entry = {"version": 1, "subwords": subwords, "sentences": [1, 1]}
    (tmp_path / "data.json").write_text(json.dumps({"source_lines": entry}))
    with pytest.raises(DataError, match=r"data\.json: source_lines holds"):
        SourceLines.load(tmp_path)
