"""The embedded corpus: hand-checked grammar, held-out combinations, fixed order."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_jax.data.phrasebook import corpus
from t2t_jax.data.phrasebook.content.casts import casts
from t2t_jax.data.phrasebook.corpus import (
    MOST_PAIRS,
    SPLITS,
    contracted,
    derivations,
    fingerprint,
    sentence_pairs,
    split_of,
    typed,
)
from t2t_jax.data.phrasebook.examples import EXAMPLES
from t2t_jax.data.phrasebook.grammar.lexicon import NounClass
from t2t_jax.data.phrasebook.order import Choices, interleave
from t2t_jax.errors import ConfigError
from tests.data.phrasebook_recipes import FRAMES, scene_of

# Blocks of three lines, written by hand and not copied from the program: frame |
# subject | verb | complement | recipient or price | place; English; German.
BY_HAND = Path(__file__).with_name("phrasebook_by_hand.txt").read_text("utf-8")
CASES = [block.split("\n") for block in BY_HAND.strip().split("\n\n")]


@pytest.fixture(scope="module")
def train():
    return list(derivations("train", 25_000))


@pytest.fixture(scope="module")
def held_out():
    return {split: list(derivations(split, 1_000)) for split in SPLITS[1:]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1])
def test_pairs_written_by_hand_are_the_grammars(case):
    recipe, english, german = case
    frame, *words = re.split(r" *\| *", recipe)
    scene = scene_of(*words, called=frame in ("request", "addressed"))
    choices = FRAMES[frame].choices
    written = {FRAMES[frame].write(scene, *choice) for choice in choices}
    assert [there for here, there in written if here == english] == [german]


def test_every_frame_is_hand_checked():
    checked = {case[0].split(" | ")[0] for case in CASES}
    assert checked == {frame.name for cast in casts() for frame, _ in cast.frames}


def test_every_sentence_is_written_once_and_has_one_german(train):
    assert len({d.english for d in train}) == len(train)


def test_sentences_that_differ_in_spelling_alone_have_one_german(train):
    germans = {}
    for english, german, *_ in train:
        german = german.rstrip(".?!")
        assert germans.setdefault(_plain(english), german) == german, english


def _plain(english):
    """Spells out what people contract, and forgets capitals and marks."""
    text = english.lower().rstrip(".?!").replace("can't", "cannot")
    text = re.sub(r"won't", "will not", text)
    text = re.sub(r"n't\b", " not", text)
    # "It's" is "it is", but "Peter's" a genitive.
    text = re.sub(r"^(he|she|it|there|that|who|where|what)'s\b", r"\1 is", text)
    for short, word in (("'m", " am"), ("'re", " are"), ("'ll", " will")):
        text = text.replace(short, word)
    return text


def test_no_english_noun_or_adjective_has_two_meanings():
    from t2t_jax.data.phrasebook.grammar import lexicon

    meanings = {}
    for kind in vars(lexicon).values():
        if isinstance(kind, NounClass):
            for word in (*kind.nouns, *kind.all_adjectives):
                key = type(word), word.english
                assert meanings.setdefault(key, word.german) == word.german


@pytest.mark.parametrize("split", SPLITS)
def test_every_pair_keeps_to_its_split(split):
    assert {split_of(d.combination) for d in derivations(split, 300)} == {split}


def test_sentences_of_the_splits_are_disjoint(train, held_out):
    english, german = ({d[side] for d in train} for side in (0, 1))
    for split in SPLITS[1:]:
        assert english.isdisjoint(d.english for d in held_out[split])
        assert german.isdisjoint(d.german for d in held_out[split])


def test_no_training_text_has_an_example_or_its_combination(train):
    combinations = {example.combination for example in EXAMPLES}
    assert {split_of(combination) for combination in combinations} == {"test"}
    assert combinations.isdisjoint(d.combination for d in train)
    examples = {_plain(example.english) for example in EXAMPLES}
    assert examples.isdisjoint(_plain(d.english) for d in train)


def test_every_word_of_the_examples_is_trained_on(train):
    trained = _words(d.english for d in train), _words(d.german for d in train)
    assert not _words(example.english for example in EXAMPLES) - trained[0]
    assert not _words(example.german for example in EXAMPLES) - trained[1]


@pytest.mark.parametrize("split", SPLITS[1:])
def test_every_held_out_word_is_trained_on(split, train, held_out):
    assert not _words(d[0] for d in held_out[split]) - _words(d[0] for d in train)
    # German has rarer ones: "wasch", "einzuladen". They are a few of a thousand words.
    german = _words(d[1] for d in held_out[split])
    assert len(german - _words(d[1] for d in train)) < len(german) / 100


def _words(sentences):
    return {w for text in sentences for w in re.findall(r"\w+", text.casefold())}


def test_every_template_is_in_the_first_thousand(train):
    names = {f"{cast.name}/{f.name}" for cast in casts() for f, _ in cast.frames}
    assert {d.template for d in train[:1_000]} == names


def test_more_than_half_of_the_corpus_is_short_and_plain(train):
    short = [d for d in train if 3 <= len(d.english.split()) <= 9]
    assert len(short) > len(train) / 2


def test_sentences_are_written_as_text_is(train):
    for derivation in train[:20_000]:
        for text in derivation[:2]:
            assert re.fullmatch(r"[\w][\w .,'-]*[.?!]?", text)
            assert "  " not in text
            assert " ," not in text
            assert 1 <= len(text.split()) <= 24
        assert derivation.german[0].isupper()


def test_more_pairs_begin_with_fewer():
    assert list(sentence_pairs("dev", 101)) == list(sentence_pairs("dev", 307))[:101]


def test_seeds_give_other_pairs_of_the_same_split():
    first = set(sentence_pairs("test", 307, seed=0))
    other = list(derivations("test", 307, seed=1))
    assert len(first & {(d.english, d.german) for d in other}) < 15
    assert {split_of(d.combination) for d in other} == {"test"}


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_process_writes_the_same(hash_seed):
    program = (
        "from t2t_jax.data.phrasebook.corpus import fingerprint; print(fingerprint())"
    )
    output = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert output.strip() == fingerprint()


computed = fingerprint.__wrapped__  # and not kept


def test_the_fingerprint_distinguishes_versions(monkeypatch):
    before = computed()
    assert re.fullmatch("[0-9a-f]{64}", before)
    monkeypatch.setattr(corpus, "VERSION", corpus.VERSION + 1)
    assert computed() != before


def test_the_fingerprint_distinguishes_grammars(monkeypatch):
    before = computed()
    other = corpus.sentence_pairs
    monkeypatch.setattr(
        corpus,
        "sentence_pairs",
        lambda *a, **k: ((e, g.replace("ß", "ss")) for e, g in other(*a, **k)),
    )
    assert computed() != before


@pytest.mark.parametrize("weights", [(1,), (3, 1), (2, 5, 7)])
def test_a_round_has_everything_as_often_as_it_weighs(weights):
    turns = interleave(enumerate(weights))
    assert [turns.count(item) for item in range(len(weights))] == list(weights)


def test_turns_are_spread_evenly():
    assert interleave([("a", 4), ("b", 2)]) == ("a", "b", "a", "a", "b", "a")


def test_an_unknown_split_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"'valid' is not .* train, dev, test"):
        sentence_pairs("valid", 1)


def test_too_many_pairs_are_refused_with_the_number_there_is():
    with pytest.raises(ConfigError, match=f"holds {MOST_PAIRS} pairs, not"):
        sentence_pairs("dev", MOST_PAIRS + 1)


def test_a_negative_count_is_refused():
    with pytest.raises(ConfigError, match="not -1"):
        sentence_pairs("dev", -1)


@pytest.mark.parametrize(
    ("proper", "short"),
    [
        ("I do not know.", "I don't know."),
        ("Do not open it!", "Don't open it!"),
        ("He cannot swim.", "He can't swim."),
        ("We will not come.", "We won't come."),
        ("I am not tired.", "I'm not tired."),
        ("She is not tired.", "She isn't tired."),
        ("They are reading.", "They're reading."),
        ("There is a dog.", "There's a dog."),
        ("You would like tea.", "You'd like tea."),
        ("Who is it?", "Who's it?"),
        ("The dog is here.", "The dog is here."),
    ],
)
def test_contractions_are_those_that_people_type(proper, short):
    assert contracted(proper) == short


def test_few_sentences_are_typed_carelessly_and_their_german_is_not():
    pair = ("I do not know.", "Ich weiß nicht.")
    seen = [typed(pair, Choices(str(number))) for number in range(2_000)]
    careless = [english for english, _ in seen if not english.endswith(".")]
    assert set(seen) == {
        pair,
        ("I don't know.", "Ich weiß nicht."),
        ("I do not know", "Ich weiß nicht"),
        ("I don't know", "Ich weiß nicht"),
        ("i do not know", "Ich weiß nicht"),
        ("i don't know", "Ich weiß nicht"),
    }
    assert 0.05 < len(careless) / len(seen) < 0.12
