"""`--mode=score`, as a user runs it."""

import json
import math

import pytest

from tests.faults.running import metrics
from tests.integration import tiny

COLUMNS = "line score log_probability num_tokens per_token source_cut".split()


def score(workdir, source, reference, *more, **how):
    texts = (f"--source={source}", f"--reference={reference}")
    return tiny.succeed("--mode=score", f"--workdir={workdir}", *texts, *more, **how)


def table(done):
    """Reads the rows of a tsv, and checks its header."""
    header, *rows = done.stdout.decode().splitlines()
    assert header.split("\t") == COLUMNS
    cells = [map(json.loads, row.split("\t")) for row in rows]
    return [dict(zip(COLUMNS, row, strict=True)) for row in cells]


def test_a_translation_gets_the_score_that_the_beam_found_it_with(counting, tmp_path):
    model = tiny.load(counting)
    text = counting.with_name("a.en").read_text(encoding="utf-8")
    sources = sorted(set(text.splitlines()))[::5]
    assert len(sources) > 20
    translations = model.translator().translations(sources)
    texts = [translation.text for translation in translations]
    again = model.vocabularies.target.encode(texts)
    # The text is cut into as many subwords as the beam has said.
    for translation, subwords in zip(translations, again, strict=True):
        assert translation.num_tokens == len(subwords) + 1
    files = {"en": sources, "de": texts}
    for name, lines in files.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = table(score(counting, tmp_path / "en", tmp_path / "de"))
    assert [row["line"] for row in rows] == list(range(1, len(sources) + 1))
    for row, translation in zip(rows, translations, strict=True):
        assert row["num_tokens"] == translation.num_tokens
        for name in ("score", "log_probability"):
            assert row[name] == pytest.approx(getattr(translation, name), abs=1e-4)
        mean = row["log_probability"] / row["num_tokens"]
        assert row["per_token"] == pytest.approx(mean, rel=1e-6)
    found = [row["score"] for row in rows]
    assert max(found) - min(found) > 0.1


def test_the_perplexity_is_that_of_the_evaluation(counting):
    texts = (counting.with_name(name) for name in ("a.en", "a.de"))
    done = score(counting, *texts, fresh=True)
    rows = table(done)
    total = sum(row["log_probability"] for row in rows)
    tokens = sum(row["num_tokens"] for row in rows)
    (scored,) = (r for r in metrics(counting) if r["kind"] == "eval")
    assert math.isclose(math.exp(-total / tokens), scored["perplexity"], rel_tol=1e-5)
    summary = done.stderr.decode().splitlines()[-1]
    assert summary == (
        f"Scored 400 pairs, {tokens:,} target tokens including eos: log-probability "
        f"per token {total / tokens:.4f}, perplexity {scored['perplexity']:.2f}. "
        "Natural logarithms. Sources cut: 0."
    )


def test_json_lines_hold_the_same_and_the_tokens_too(counting, tmp_path):
    pairs = "one two\n\nfive\n\n", "eins zwei\nvier\n\n\n"
    for name, text in zip(("en", "de"), pairs, strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = (tmp_path / "en", tmp_path / "de")
    out = tmp_path / "out.jsonl"
    rows = table(score(counting, *files))
    done = score(counting, *files, "--format=jsonl", f"--output={out}")
    assert done.stdout == b""
    with out.open(encoding="utf-8") as file:
        records = list(map(json.loads, file))
    assert len(records) == len(rows) == 4
    for row, record in zip(rows, records, strict=True):
        assert {name: record[name] for name in COLUMNS} == row
        assert record.keys() - set(COLUMNS) == {"tokens", "token_log_probabilities"}
        logs = record["token_log_probabilities"]
        assert len(logs) == len(record["tokens"]) == row["num_tokens"]
        assert math.isclose(math.fsum(logs), row["log_probability"], rel_tol=1e-7)
        assert record["tokens"][-1] == "</s>"
    assert "".join(records[0]["tokens"]) == "▁eins▁zwei</s>"
    assert [record["num_tokens"] for record in records][2:] == [1, 1]
