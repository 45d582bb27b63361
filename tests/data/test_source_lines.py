import json
from operator import methodcaller

import pytest

from t2t_jax.data.source_lines import SourceLines, Spread, measure_source_lines
from t2t_jax.errors import DataError


def test_source_lines_are_measured(text_corpus, encode, vocabulary):
    lines = [f"{'the ' * number}dog" for number in (1, 7, 3, 100)]
    cache = encode(text_corpus(lines, ["Hund"] * 4))
    count = methodcaller("count", "the")
    found = measure_source_lines(cache, vocabulary, count_sentences=count)
    longest = len(vocabulary.encode([lines[1]])[0])
    # The line of 100 is longer than data.max_length: the model does not see it.
    assert found == SourceLines(Spread(longest, longest), Spread(7, 7))


def test_an_entry_is_read_as_it_was_written(tmp_path):
    lines = SourceLines(Spread(31, 53), Spread(1, 3))
    assert SourceLines.load(tmp_path) is None
    for name in ("data.json", "model.json"):
        (tmp_path / name).write_text(json.dumps({"source_lines": lines.to_json()}))
        assert SourceLines.load(tmp_path) == lines
        (tmp_path / name).write_text("{}")  # as of an older run
        assert SourceLines.load(tmp_path) is None


@pytest.mark.parametrize("subwords", [[5, 3], [-1, 3], [1], "13", [1.5, 2], [True, 2]])
def test_a_damaged_entry_is_named(tmp_path, subwords):
    entry = {"version": 1, "subwords": subwords, "sentences": [1, 1]}
    (tmp_path / "data.json").write_text(json.dumps({"source_lines": entry}))
    with pytest.raises(DataError, match=r"data\.json: source_lines holds"):
        SourceLines.load(tmp_path)
