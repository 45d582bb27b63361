"""Whatever the lines are: as many come out as went in, in their order, each one line.

Seen to fail: without `_LINE_ENDS` in Vocabulary.decode (a line in a line), without the
look-up by number in Translator.translations (order), without the blank lines' share of
Translator.iter_translations (lines that are missing), and without
`replace_lone_surrogates` (a TypeError). That lines end at newlines only is
tests/cli/console/test_text_io.py's.
"""

import dataclasses
import math
import re

import jax
import jax.numpy as jnp
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.model.architectures import make_module, step_model
from t2t_jax.model.config import TransformerConfig
from t2t_jax.types import EOS
from tests.decoding.models import Biased

TIE = 1e-4
EXTRA = 5
# 8 rows at 32 slots; one line alone has a row of its own.
SEARCH = DecodingConfig(
    beam_size=2,
    max_extra_tokens=EXTRA,
    max_source_length=32,
    tokens_per_batch=8 * (32 + EXTRA),
)
PHRASES = [line for pair in open_corpus("phrasebook:train:300") for line in pair]
BLANK = ["", " ", " \t ", "\u3000", "\r", "\u200b", "\ufeff"]
ODD = [
    *BLANK,
    *("🙂", "👩‍👩‍👧", "a\tb", "<s>", "</s> <pad> <unk>", "a\u2028b\x85c", "\x0b\x0c"),
    *("a\0b", "\0", "x\r", "\ud800", "\ufffd\ufffe", "e\u0301" * 40, "ß" * 300),
]
# Beside what is drawn, which is shown where a test fails.
LONG = "the " * 1_000
LINES = st.lists(
    st.sampled_from(ODD)
    | st.sampled_from(PHRASES)
    | st.text(st.characters(exclude_characters="\n", exclude_categories=())),
    max_size=9,
)
LINE_ENDS = re.compile("[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")


@pytest.fixture(scope="module")
def vocabularies():
    """Spells in bytes what it does not know, and so can say anything at all."""
    config = VocabularyConfig(size=400, byte_fallback=True)
    learnt = Vocabulary.train(PHRASES, config.size, config=config)
    return VocabularyPair(learnt, learnt)


@pytest.fixture(scope="module")
def model(vocabularies):
    """Draws a Transformer so decided about nothing in particular that ties are rare."""
    sizes = {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
    sizes |= {"d_k": 8, "d_v": 8, "vocab_size": vocabularies.target.size}
    module = make_module(TransformerConfig(**sizes), devices=jax.local_devices())
    token = jnp.ones((1, 1), jnp.int32)
    params = module.init(jax.random.key(1), token, token)["params"]
    return step_model(module, jax.tree.map(lambda x: 3.0 * x, params))


@pytest.fixture(scope="module")
def translator(model, vocabularies):
    none_V = jnp.zeros(vocabularies.target.size)
    return Translator(Biased(model, none_V), vocabularies, SEARCH, row_growth=8)


def biased(translator, bias):
    bias_V = translator.model.bias_V.at[EOS].set(bias)
    other = translator.model.replace(bias_V=bias_V)
    return dataclasses.replace(translator, model=other)


def require_same_but_for_ties(found, expected):
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        same = (ours.text, ours.num_tokens) == (theirs.text, theirs.num_tokens)
        assert same or abs(ours.score - theirs.score) <= TIE
        # float32 in batches of another shape: weights that are 1e-7 larger or smaller
        # move the scores of this decided model by up to 2e-4.
        assert math.isclose(ours.score, theirs.score, rel_tol=1e-3, abs_tol=TIE)


@settings(max_examples=25, deadline=None)
@given(LINES)
@example(["", *ODD, LONG, *PHRASES[:9]])
def test_a_line_is_translated_alike_alone_and_in_any_batch(translator, lines):
    alone = [translator.translations([line])[0] for line in lines]
    found = translator.translations(lines)
    require_same_but_for_ties(found, alone)
    backwards = translator.translations(lines[::-1])
    require_same_but_for_ties(backwards[::-1], alone)
    # Every line becomes one line, and a blank one an empty one.
    for line, translation in zip(lines, found, strict=True):
        assert not LINE_ENDS.search(translation.text)
        assert translation.num_tokens <= translation.num_parts * (31 + EXTRA)
        if line in BLANK:
            assert (translation.text, translation.num_tokens) == ("", 0)


@settings(max_examples=10, deadline=None)
@given(LINES)
def test_a_model_that_ends_at_once_says_nothing(translator, lines):
    empty = dataclasses.replace(translator.config, min_tokens=0)
    ends = dataclasses.replace(biased(translator, 1e6), config=empty)
    found = ends.translations(lines)
    assert [translation.text for translation in found] == [""] * len(lines)
    for translation in found:  # One eos for each part.
        assert translation.num_tokens == translation.num_parts
    assert not any(translation.truncated for translation in found)


@settings(max_examples=10, deadline=None)
@given(LINES)
def test_a_model_that_never_ends_is_stopped_at_each_line_s_limit(translator, lines):
    found = biased(translator, -1e6).translations(lines)
    subwords = translator.vocabularies.source.encode(
        [line.strip() and re.sub("[\ud800-\udfff]", "\ufffd", line) for line in lines]
    )
    for ids, translation in zip(subwords, found, strict=True):
        assert translation.truncated == bool(ids)
        parts = translation.num_parts
        assert parts == bool(ids) if len(ids) <= 31 else parts > 1
        if parts < 2:  # How a part of a line is spelt depends on where it was split.
            assert translation.num_tokens == len(ids) + parts * EXTRA
        else:
            assert parts * EXTRA < translation.num_tokens <= parts * (31 + EXTRA)
