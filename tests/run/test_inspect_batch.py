"""The batch of a step is reconstructed.

Seen to fail: with the position after the batch, with a record after the step taken for
one before it, and with the sides of a pair exchanged.
"""

from itertools import islice

import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.data.batching.pipeline import START, train_stream
from t2t_jax.run.prepared_data import prepare_data, read_batch
from tests.integration import tiny

STEPS = 40


def prepared(folder, **changed):
    (folder / "own.de").write_text(
        "".join(f"Zeile {n} {'ab' * n}\n" for n in range(60))
    )
    (folder / "own.en").write_text("".join(f"line {n} {'ba' * n}\n" for n in range(60)))
    keys = {
        "data__train": f"1.5*phrasebook:train:70++text:{folder}/own.en,{folder}/own.de",
        "vocabulary__size": 130,
        "data__max_length": 50,
        **changed,
    }
    options = parse_argv(tiny.arguments(folder / "run", **keys))
    options.workdir.create()
    return prepare_data(options.config, workdir=options.workdir, log=lambda line: None)


CASES = {
    "packed": {},
    "length_buckets": {"data__layout": "length_buckets"},
    "bpe_dropout": {"data__source_bpe_dropout": 0.3, "data__modifiers": "lower:0.5"},
}


@pytest.fixture(scope="module", params=CASES)
def text(request, tmp_path_factory):
    return prepared(tmp_path_factory.mktemp(request.param), **CASES[request.param])


@pytest.fixture(scope="module")
def steps(text):
    """Lists place and pairs, as text, of the batches that training gets."""
    found, place = [], START
    how = {"seed": text.seed, "tokens": text.sampled_epochs(log=print)}
    with train_stream(text.train, text.config, **how) as batches:
        for after, batch in islice(batches, STEPS):
            found.append((place, sorted(pairs_in(batch, text.vocabularies.target))))
            place = after
    return found


@pytest.fixture(scope="module")
def read(text):
    """What is reconstructed of each step, from the first."""
    return [read_batch(text, step) for step in range(1, STEPS + 1)]


def pairs_in(batch, vocabulary):
    for row in range(len(batch.rows)):
        for segment in range(1, batch.target_segments[row].max() + 1):
            sides = (
                batch.source[row][batch.source_segments[row] == segment],
                batch.target_outputs[row][batch.target_segments[row] == segment],
            )
            yield tuple(vocabulary.decode(sides))


def as_text(found):
    return sorted((pair.source, pair.target) for pair in found.pairs)


def test_each_step_s_batch_is_the_one_that_training_gets(steps, read):
    assert steps[-1][0].epoch > 0  # or the end of an epoch is not looked at
    assert [(found.position, as_text(found)) for found in read] == steps


def test_records_shorten_the_planning_and_change_nothing(text, steps):
    # Two that name no batch.
    records = [{"step": 9, "kind": "final", "epoch": 7}]
    records += [{"step": 22, "kind": "train", "epoch": 0, "batch": 1.5}]
    records += [
        {"step": step, "kind": "train", **place._asdict()}
        for step, (place, _) in enumerate(steps, start=1)
        if step % 6 == 0
    ]
    for step in (5, 6, 7, 23, STEPS):
        found = read_batch(text, step, records=records)
        assert (found.position, as_text(found)) == steps[step - 1]
    # And it is believed: this is how it is seen that it was used.
    wrong = {"step": 24, "kind": "train", "epoch": 0, "batch": 0}
    assert as_text(read_batch(text, 25, records=[wrong])) == steps[1][1]


def test_a_pair_is_at_the_reported_line(read):
    seen = {}
    for pair in (pair for found in read for pair in found.pairs):
        seen.setdefault(pair.location.corpus, []).append(pair)
    (own,) = (corpus for corpus in seen if corpus.startswith("text:"))
    for pair in seen[own]:
        number = pair.location.line - 1
        assert pair.source == f"line {number} {'ba' * number}".strip()
        assert pair.target.lower() == f"zeile {number} {'ab' * number}".strip()
    assert len({pair.location.line for pair in seen[own]}) > 20
    assert len(seen) == 2


def test_sampled_subwords_are_shown_beside_the_text(tmp_path):
    text = prepared(tmp_path, data__source_bpe_dropout=0.3, data__dev_pairs=0)
    lines = []
    found = read_batch(text, 1, log=lines.append)
    assert found == read_batch(text, 1)
    assert lines[0].startswith("BPE-dropout of source (0.3): sampling the subwords")
    usual = text.vocabularies.source.encode([pair.source for pair in found.pairs])
    assert all(pair.target_subwords == "" for pair in found.pairs)
    sampled = [pair.source_subwords.split(" ") for pair in found.pairs]
    for pair, pieces in zip(found.pairs, sampled, strict=True):
        assert "".join(pieces).replace("▁", " ").strip() == pair.source
    assert sum(map(len, sampled)) > sum(map(len, usual))
