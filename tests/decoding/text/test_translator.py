"""From lines to translations: splitting, n-best, prefixes, drawing, status.

Seen to fail: without the limits of `_sentences`, without `whole`, without a replaced
`segment` in `Translate`, with `min_tokens` of 0, and without `short`.
"""

import dataclasses
import logging

import jax
import jax.numpy as jnp
import pytest
from sacrebleu.metrics import CHRF

from t2t_jax.data.source_lines import SourceLines, Spread
from t2t_jax.data.token_cache.known_words import KnownWords, distinct_hashes
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.text import translator as translator_module
from t2t_jax.decoding.text.distributed_translate import Translate
from t2t_jax.errors import DataError, UserError
from t2t_jax.evaluation.protocol import protocol_decoding
from t2t_jax.exchange.exporting.verification import search_config
from tests.decoding.models import recurrent
from tests.decoding.words import (
    CONFIG,
    Counted,
    V,
    WordVocabulary,
    sentences,
    translator,
)

DRAWN = recurrent(11, V, eos_bias=1.0)


def statuses(translations):
    return [translation.status for translation in translations]


# --- lines


def test_a_line_of_words_never_seen_is_unfamiliar():
    known = KnownWords(distinct_hashes(["Der Hund und die Katze."]))
    knowing = dataclasses.replace(translator(), known_words=known)
    lines = ["der HUND rot", "der Hund schläft nicht", "42!", ""]
    found = knowing.translations(lines)
    assert [one.unseen_words for one in found] == [1 / 3, 1 / 2, 0.0, 0.0]
    assert statuses(found) == ["ok", "unfamiliar", "ok", "empty"]
    # A model that does not know its training text says nothing of it.
    assert [one.unseen_words for one in translator().translations(lines)] == [None] * 4


def test_strings_that_were_no_utf_8_are_marked():
    found = translator().translations(["der Hund", "der \udcff", "\0", "rot"])
    assert [one.invalid_utf8 for one in found] == [False, True, True, False]
    begun = translator().translations(["rot", "rot"], prefixes=["die", "\udcfc"])
    assert statuses(begun) == ["ok", "invalid_utf8"]
    lines = ["der \ud800", "\udc00 Hund", "\ud83d\ude42"]
    assert translator().translate(lines) == ["der ?", "? Hund", "🙂"]


def test_every_line_comes_once_as_it_is_done():
    lines = ["", *sentences(23), " "]
    numbers = [number for number, _ in translator().iter_translations(lines)]
    assert sorted(numbers) == list(range(25))
    assert numbers[:2] == [0, 24]
    assert len(lines[numbers[2]].split()) == max(len(line.split()) for line in lines)


def test_no_output_is_empty_unless_it_may_be_and_short_ones_are_marked():
    silent = recurrent(3, V, eos_bias=60.0)
    for rules in ({}, {"sample": True}, {"beam_rule": "shrinking"}):
        may_be = translator(silent, min_tokens=0, **rules)
        assert statuses(may_be.translations(["der Hund"])) == ["no_output"]
        (something,) = translator(silent, **rules).translations(["der Hund"])
        assert (bool(something.text), something.status) == (True, "ok")
    ten = "der " * 10
    found = translator(silent).translations(["der " * 9, ten, ten * 2])
    assert [one.short for one in found] == [False, True, True]
    assert found[2].statuses == ("short", "chunked")


def test_scores_that_are_no_numbers_are_an_error_that_names_the_line():
    model = recurrent(0, V)
    damaged = translator(model.replace(out=model.out * jnp.nan))
    with pytest.raises(DataError, match=r"score of line 2 must be .* is nan"):
        damaged.translate(["", "der Hund"])
    with pytest.raises(DataError, match="The score of line 9 must be a finite"):
        damaged.translations(["", "der Hund"], first=7)


# --- programs


@pytest.mark.parametrize("begin", [None, "der "])
def test_batches_new_weights_and_prefixes_compile_nothing_new(begin):
    def decode(seed, lines):
        model = Counted(*jax.tree.leaves(recurrent(seed, V, eos_bias=-50.0)))
        prefixes = begin and [begin * (5 * seed + 1), *[""] * (len(lines) - 1)]
        translator(model).translations(lines, prefixes=prefixes)

    decode(0, ["rot " * 15, *sentences(3)])
    first = len(Counted.times)
    assert first > 0
    for seed in range(1, 4):  # as many batches as it takes, 4 rows each
        decode(seed, ["rot " * 15, *sentences(31, seed)])
    assert len(Counted.times) == first


def test_a_line_that_comes_alone_finds_its_programs_made(monkeypatch):
    class Cold(Counted):
        """Has programs of its own."""

    model = Cold(*jax.tree.leaves(recurrent(0, V)))
    warm = translator(model, max_source_length=64, tokens_per_batch=84)
    asked = []
    warm.warm_up(lambda: asked.append(None) or len(asked) > 2)
    assert len(asked) == 3  # of lengths 16 and 32, not of 64
    before = len(Counted.times)
    warm.translate(["der Hund"])
    warm.translate(["der " * 20])
    assert len(Counted.times) == before > 0

    def fail(*args, **kwargs):
        raise MemoryError

    # Memory that does not suffice is an error of translating, not of warming up.
    monkeypatch.setattr(translator_module, "chunked_search", fail)
    translator().warm_up()


# --- lines of several sentences, and long ones

TWO_SENTENCES = SourceLines(subwords=Spread(6, 9), sentences=Spread(2, 4))
ONE, TWO = "der Hund ! ", "die Katze schläft ! "


def limited(**changes):
    return dataclasses.replace(translator(**changes), source_lines=TWO_SENTENCES)


@pytest.mark.parametrize(
    ("line", "segment", "parts"),
    [
        (ONE, "auto", 1),
        (ONE * 2, "auto", 1),  # as many sentences and subwords as usual
        (ONE * 3, "auto", 3),  # one sentence more
        (ONE + TWO, "auto", 2),  # one subword more
        ("die " * 9, "auto", 1),  # a long sentence is one
        ("der Dr. Hund " * 2, "auto", 1),
        (ONE * 2, "sentences", 2),
        (ONE * 3, "lines", 1),
        (f"{ONE}{'die ' * 16}! {ONE}", "auto", 4),  # the second one in two parts
    ],
)
def test_lines_beyond_those_of_the_training_text_are_split(line, segment, parts):
    (found,) = limited(segment=segment).translations([line])
    assert found.num_parts == parts
    assert ("chunked" in found.statuses) == (parts > 1)
    # Nothing is lost: the model says every word again, unknown ones as "?".
    assert len(found.text.split()) == len(line.split())


def test_a_line_stays_a_line_and_keeps_its_gaps():
    lines = ["", "der Hund! die Katze! rot! ", "das Haus", "\u4f60\u3002" * 3]
    assert limited().translate(lines) == ["", "der ? die ? ?", "das Haus", "???"]


def test_what_is_asked_of_a_whole_line_leaves_it_whole():
    line = ONE * 3
    for one in ({"prefixes": ["rot"]}, {"terms": [["rot"]]}):
        assert limited().translations([line], **one)[0].num_parts == 1
    parser = dataclasses.replace(limited(), is_parser=True)
    assert parser.translations([line])[0].num_parts == 1
    # A model of unknown lines splits none.
    assert translator().translations([line])[0].num_parts == 1
    (found,) = limited(segment="sentences").translations([line], prefixes=["rot"])
    assert (found.num_parts, found.text[:3]) == (3, "rot")


def test_comparisons_are_of_lines_as_they_are():
    always = DecodingConfig(segment="sentences")
    assert protocol_decoding(always).segment == "lines"
    for greedy in (True, False):
        assert search_config(always, greedy=greedy).segment == "lines"
    model, line = recurrent(5, V, eos_bias=1.0), ONE + TWO
    development = Translate(
        make_model=lambda params: model,
        vocabularies=translator().vocabularies,
        config=dataclasses.replace(CONFIG, segment="sentences"),
    )
    (found,) = development({}, [line])
    assert [found.text] == translator(model, segment="lines").translate([line])
    assert [found.text] != translator(model, segment="sentences").translate([line])


def test_long_sources_are_split_and_joined():
    lines = ["der " * 15, "das " * 16, "rot", "und " * 40]
    found = translator().translations(lines)
    assert [one.text for one in found] == [line.strip() for line in lines]
    assert [one.num_parts for one in found] == [1, 2, 1, 3]
    assert statuses(found) == ["ok", "chunked", "ok", "chunked"]
    # One eos for each part is counted, and one is left among the tokens.
    assert found[3].num_tokens == 43
    assert len(found[3].hypotheses[0].tokens) == len(found[3].source_tokens) == 41


class Letters(WordVocabulary):
    """Spells every character with 20 ids."""

    def encode(self, lines):
        return [[4] * (20 * len(line.strip())) for line in lines]


def test_what_cannot_be_split_is_cut_and_counted_in_one_warning(caplog):
    cutting = dataclasses.replace(
        translator(), vocabularies=VocabularyPair(Letters(), WordVocabulary())
    )
    with caplog.at_level(logging.WARNING, logger="absl"):
        found = cutting.translations(["xy", "", "z"])
    assert statuses(found) == ["truncated", "empty", "truncated"]
    assert [translation.num_parts for translation in found] == [2, 0, 1]
    (record,) = caplog.records
    assert "2 of 3 lines" in record.getMessage()
    assert "config.decoding.max_source_length" in record.getMessage()


# --- searches


def test_the_best_come_first_also_of_a_split_line():
    lines = ["und rot " * 30, *sentences(5)]
    for one in translator(DRAWN, n_best=3).translations(lines):
        ranks = [(not h.ended, -h.score) for h in one.hypotheses]
        assert len(ranks) == 3
        assert ranks == sorted(ranks)
        assert len({hypothesis.tokens for hypothesis in one.hypotheses}) == 3


def test_a_translation_begins_with_its_prefix():
    lines, prefixes = sentences(3), ["der Hund", "", "rot rot rot rot"]
    forced = translator(DRAWN).translations(lines, prefixes=prefixes)
    for one, prefix in zip(forced, prefixes, strict=True):
        assert one.text.startswith(prefix)
    assert forced[1] == translator(DRAWN).translations(lines)[1]
    with pytest.raises(UserError, match="3 lines and 1 prefixes"):
        translator(DRAWN).translations(lines, prefixes=["der"])
    long = ["", "der " * 40, "rot"]
    with pytest.raises(DataError, match="Line 9: its prefix must be shorter"):
        translator(DRAWN).translations(lines, first=7, prefixes=long)
    short = translator(max_length_ratio=1.0)
    assert short.translations(["der Hund"], prefixes=["rot und"])
    with pytest.raises(DataError, match="allowed, 3 tokens"):
        short.translations(["der Hund"], prefixes=["rot und nicht"])


def test_another_seed_draws_other_outputs():
    first, second, again = (
        translator(DRAWN, sample=True, seed=seed).translate(sentences(9))
        for seed in (5, 6, 5)
    )
    assert first == again != second


@pytest.mark.parametrize("kind", [{"sample": True, "seed": 5}, {}])
def test_minimum_bayes_risk_keeps_what_is_most_like_all_outputs(kind):
    lines = sentences(9)
    several = translator(DRAWN, beam_size=7, n_best=7, **kind).translations(lines)
    kept = translator(DRAWN, beam_size=7, n_best=2, mbr="chrf", **kind)
    others = 0
    for all_7, two in zip(several, kept.translations(lines), strict=True):
        texts = [one.text for one in all_7.hypotheses]
        means = [
            sum(CHRF().sentence_score(text, [other]).score for other in texts)
            for text in texts
        ]
        found = [means[texts.index(one.text)] for one in two.hypotheses]
        assert found == pytest.approx(sorted(means, reverse=True)[:2])
        others += two.text != all_7.text
        length = len(two.hypotheses[0].tokens) - two.hypotheses[0].ended
        subwords = len(two.source_tokens) - 1
        assert two.short == (subwords >= 10 and 3 * length < subwords)
    assert others
    with pytest.raises(UserError, match="must be at least 2"):
        DecodingConfig(beam_size=1, mbr="chrf")


# --- trees

SYMBOLS = "<pad> <s> </s> <unk> (S )S (NP )NP (VP )VP XX".split()


class Symbols(WordVocabulary):
    """A symbol of a tree is a piece."""

    size = len(SYMBOLS)

    def decode(self, sequences):
        return [" ".join(self.pieces(sequence)) for sequence in sequences]

    def pieces(self, ids):
        return [SYMBOLS[token] for token in ids]


def parser():
    model, size = recurrent(1, V), Symbols.size  # of more tokens than symbols
    model = model.replace(out=model.out[:, :size], bias=model.bias[:size])
    trees = translator(model, constraint="tree", max_extra_tokens=8, beam_size=2)
    words = VocabularyPair(WordVocabulary(), Symbols())
    return dataclasses.replace(trees, vocabularies=words, is_parser=True)


@pytest.mark.parametrize(
    ("line", "options", "named"),
    [
        ("die " * 20, {}, "Line 3: it has more than 15 subwords"),
        ("die\u200b \u200b " * 9, {}, "its 18 words needs 21 tokens"),
        ("die", {"prefixes": ["das"]}, "does not support prefixes"),
    ],
)
def test_a_line_without_room_for_its_tree_is_refused(line, options, named):
    with pytest.raises(DataError, match=named):
        parser().translations([line], first=2, **options)
