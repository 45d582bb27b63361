"""The grammar: hand-checked grammar, held-out combinations, fixed order."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from grammar import derivation, lexicon
from grammar.content.casts import casts
from grammar.derivation import (
    SPLITS,
    contracted,
    derivations,
    fingerprint,
    split_of,
    tsv_lines,
    typed,
)
from grammar.examples import COMBINATIONS
from grammar.lexicon import NounClass
from grammar.order import Choices, interleave
from recipes import FRAMES, scene_of

from t2t_jax.data.corpora.phrasebook import examples

# Blocks of three lines, written by hand and not copied from the program: frame |
# subject | verb | complement | recipient or price | place; English; German.
BY_HAND = Path(__file__).with_name("by_hand.txt").read_text("utf-8")
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
    assert len(COMBINATIONS) == len(examples())
    assert {split_of(combination) for combination in COMBINATIONS} == {"test"}
    assert COMBINATIONS.isdisjoint(d.combination for d in train)
    sentences = {_plain(example.english) for example in examples()}
    assert sentences.isdisjoint(_plain(d.english) for d in train)


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
    for derived in train[:20_000]:
        for text in derived[:2]:
            assert re.fullmatch(r"[\w][\w .,'-]*[.?!]?", text)
            assert "  " not in text
            assert " ," not in text
            assert 1 <= len(text.split()) <= 24
        assert derived.german[0].isupper()


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_process_writes_the_same(hash_seed):
    program = "from grammar.derivation import fingerprint; print(fingerprint())"
    output = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert output.strip() == fingerprint()


def test_the_fingerprint_distinguishes_versions_and_grammars(monkeypatch):
    with monkeypatch.context() as changed:
        changed.setattr(derivation, "VERSION", derivation.VERSION + 1)
        other_version = fingerprint()
    plain = tsv_lines
    monkeypatch.setattr(
        derivation, "tsv_lines", lambda *a: (x.replace("ß", "ss") for x in plain(*a))
    )
    other_grammar = fingerprint()
    monkeypatch.undo()
    assert len({fingerprint(), other_version, other_grammar}) == 3


@pytest.mark.parametrize("weights", [(1,), (3, 1), (2, 5, 7)])
def test_a_round_has_everything_as_often_as_it_weighs(weights):
    turns = interleave(enumerate(weights))
    assert [turns.count(item) for item in range(len(weights))] == list(weights)


def test_turns_are_spread_evenly():
    assert interleave([("a", 4), ("b", 2)]) == ("a", "b", "a", "a", "b", "a")


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
