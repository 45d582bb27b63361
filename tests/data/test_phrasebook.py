"""The embedded corpus: hand-checked grammar, held-out combinations, fixed order."""

import os
import re
import subprocess
import sys
from itertools import islice, product
from pathlib import Path

import pytest

from t2t_jax.data import phrasebook
from t2t_jax.data.grammar.order import permutation
from t2t_jax.data.grammar.phrases import scene
from t2t_jax.data.grammar.scenes import casts
from t2t_jax.data.phrasebook import (
    SPLITS,
    combinations,
    count_pairs,
    derivations,
    fingerprint,
    sentence_pairs,
    split_of,
)
from t2t_jax.errors import ConfigError

# Blocks of three lines, written by hand and not copied from the program:
# template | subject | verb | (recipient or price +) complement; English; German.
BY_HAND = Path(__file__).with_name("phrasebook_by_hand.txt").read_text("utf-8")
CASES = [block.split("\n") for block in BY_HAND.strip().split("\n\n")]


def _known_phrases(events):
    """Every English phrase of a cast's nominals; people addressed go by their name."""
    nominals = {}
    for event in events:
        for nominal in (event.subject, event.complement, event.other):
            if nominal is not None:
                nominals.setdefault(nominal)
    for nominal in nominals:
        for index in range(nominal.size):
            phrase = nominal.phrase(index)
            yield phrase.vocative[0] or phrase.english, phrase


@pytest.fixture(scope="module")
def grammar():
    """Cast -> its events by (verb), its phrases by English, its frames by name."""
    return {
        cast.name: (
            {_verb_of(event): event.verb for event in cast.events},
            dict(_known_phrases(cast.events)),
            {frame.name: frame for frame, _ in cast.frames},
        )
        for cast in casts()
    }


def _verb_of(event):
    return event.combination[1]


@pytest.fixture(scope="module")
def train():
    return list(derivations("train", 60_000))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1])
def test_pairs_written_by_hand_are_the_grammars(case, grammar):
    recipe, english, german = case
    template, subject, verb, complements = recipe.split(" | ")
    cast, _, frame_name = template.partition("/")
    verbs, phrases, frames = grammar[cast]
    other, _, complement = complements.rpartition(" + ")
    made = scene(
        phrases[subject],
        verbs[verb],
        phrases[complement],
        phrases[other] if other else None,
    )
    frame = frames[frame_name]
    written = [frame.write(made, *choice) for choice in frame.choices]
    assert [there for here, there in written if here == english] == [german]


def test_every_template_is_hand_checked():
    checked = {case[0].split(" | ")[0].partition("/")[2] for case in CASES}
    assert checked == {frame.name for cast in casts() for frame, _ in cast.frames}


def test_every_sentence_is_written_once_and_has_one_german(train):
    assert len({d.english for d in train}) == len(train)


def test_all_sentences_of_one_event_differ():
    for cast in casts():
        event = min(cast.events, key=lambda event: event.size)
        scenes = [event.scene(index) for index in range(event.size)]
        for frame, _ in cast.frames:
            english = [
                frame.write(made, *choice)[0]
                for made, choice in islice(product(scenes, frame.choices), 20_000)
            ]
            assert len(set(english)) == len(english)


def test_no_english_word_has_two_meanings():
    phrases = {}
    for cast in casts():
        for english, phrase in _known_phrases(cast.events):
            assert phrases.setdefault(english, phrase.german) == phrase.german or (
                cast.name == "addressees"
            )


def test_each_split_holds_over_a_million_pairs():
    assert all(count_pairs(split) > 1_000_000 for split in SPLITS)


def test_the_count_is_that_of_the_sentences(monkeypatch):
    event = next(e for e in casts()[0].events if e.complement.lemma == "bread")
    sizes = event.subject.size * event.complement.size
    assert event.size == sizes == 6 * 7 * 8 * 6
    tiny = casts()[0]._replace(events=(event,), frames=casts()[0].frames[:2])
    monkeypatch.setattr(phrasebook, "casts", lambda: (tiny,))
    phrasebook._templates.cache_clear()
    try:
        split = split_of(event.combination)
        total = count_pairs(split)
        assert total == event.size * sum(len(f.choices) for f, _ in tiny.frames)
        assert len(set(sentence_pairs(split, total))) == total
    finally:
        phrasebook._templates.cache_clear()


def test_combinations_of_the_splits_are_disjoint_and_complete():
    kept = [set(combinations(split)) for split in SPLITS]
    assert not kept[0] & kept[1]
    assert not kept[0] & kept[2]
    assert not kept[1] & kept[2]
    everything = {event.combination for cast in casts() for event in cast.events}
    assert set().union(*kept) == everything
    assert all(0.02 < len(k) / len(everything) < 0.03 for k in kept[1:])


@pytest.mark.parametrize("split", SPLITS)
def test_every_pair_keeps_to_its_split(split):
    assert {split_of(d.combination) for d in derivations(split, 5_000)} == {split}


def test_sentences_of_the_splits_are_disjoint(train):
    english, german = ({d[side] for d in train} for side in (0, 1))
    for split in SPLITS[1:]:
        for pair in sentence_pairs(split, 5_000):
            assert pair[0] not in english
            assert pair[1] not in german


@pytest.mark.parametrize("split", SPLITS[1:])
@pytest.mark.parametrize("side", [0, 1])
def test_every_held_out_word_is_trained_on(split, side, train):
    def words(sentences):
        return {w for text in sentences for w in re.findall(r"\w+", text.casefold())}

    trained = words(d[side] for d in train[:20_000])
    assert not words(pair[side] for pair in sentence_pairs(split, 2_000)) - trained


def test_every_template_is_in_the_first_thousand(train):
    names = {f"{cast.name}/{f.name}" for cast in casts() for f, _ in cast.frames}
    for split in SPLITS:
        assert {d.template for d in derivations(split, 1_000)} == names


def test_sentences_are_written_as_text_is(train):
    for derivation in train[:20_000]:
        for text in derivation[:2]:
            assert re.fullmatch(r"[A-ZÜ][\w .,'-]*[.?]", text)
            assert "  " not in text
            assert " ," not in text
            assert 4 <= len(text.split()) <= 20


def test_more_pairs_begin_with_fewer():
    assert list(sentence_pairs("dev", 101)) == list(sentence_pairs("dev", 997))[:101]


def test_seeds_give_other_pairs_of_the_same_split():
    first = set(sentence_pairs("test", 997, seed=0))
    other = list(derivations("test", 997, seed=1))
    assert len(first & {(d.english, d.german) for d in other}) < 50
    assert {split_of(d.combination) for d in other} == {"test"}


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_process_writes_the_same(hash_seed):
    program = "from t2t_jax.data.phrasebook import fingerprint; print(fingerprint())"
    output = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert output.strip() == fingerprint()


def test_the_fingerprint_tells_versions_apart(monkeypatch):
    before = fingerprint()
    assert re.fullmatch("[0-9a-f]{64}", before)
    monkeypatch.setattr(phrasebook, "VERSION", phrasebook.VERSION + 1)
    assert fingerprint() != before


def test_the_fingerprint_tells_grammars_apart(monkeypatch):
    before = fingerprint()
    other = phrasebook.sentence_pairs
    monkeypatch.setattr(
        phrasebook,
        "sentence_pairs",
        lambda *a, **k: ((e, g.replace("ß", "ss")) for e, g in other(*a, **k)),
    )
    assert fingerprint() != before


@pytest.mark.parametrize("size", [1, 2, 7, 16, 97, 1009])
def test_a_permutation_meets_every_number_once(size):
    assert sorted(permutation(size, "a")) == list(range(size))


def test_permutations_of_other_keys_differ():
    assert list(permutation(97, "a")) != list(permutation(97, "b"))


def test_an_unknown_split_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"'valid' is not .* train, dev, test"):
        sentence_pairs("valid", 1)


def test_too_many_pairs_are_refused_with_the_number_there_is():
    available = count_pairs("dev")
    with pytest.raises(ConfigError, match=f"holds {available} pairs, not"):
        sentence_pairs("dev", available + 1)


def test_a_negative_count_is_refused():
    with pytest.raises(ConfigError, match="not -1"):
        sentence_pairs("dev", -1)
