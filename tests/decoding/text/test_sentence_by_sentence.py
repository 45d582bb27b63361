"""Lines of several sentences, and outputs that are missing or short.

Seen to fail: without the limits of `_sentences`, without `is_bound`, without a replaced
`segment` in `make_translate`, with `min_tokens` of 0, and without `short` in
`to_translations` and `merge_parts`.
"""

import dataclasses

import pytest

from t2t_jax.data.source_lines import SourceLines, Spread
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.text.distributed_translate import make_translate
from t2t_jax.decoding.text.segments import make_segments
from t2t_jax.evaluation.protocol import protocol_decoding
from t2t_jax.exchange.exporting.backends import search_config
from tests.decoding.models import recurrent
from tests.decoding.words import CONFIG, V, translator

TWO_SENTENCES = SourceLines(subwords=Spread(6, 9), sentences=Spread(2, 4))
ONE, TWO = "der Hund ! ", "die Katze schläft ! "


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
    limited = dataclasses.replace(
        translator(segment=segment), source_lines=TWO_SENTENCES
    )
    (found,) = limited.translations([line])
    assert found.num_parts == parts
    assert ("chunked" in found.statuses) == (parts > 1)
    # Nothing is lost: the model says every word again, unknown ones as "?".
    assert len(found.text.split()) == len(line.split())


def test_a_line_stays_a_line_and_keeps_its_gaps():
    limited = dataclasses.replace(translator(), source_lines=TWO_SENTENCES)
    lines = ["", "der Hund! die Katze! rot! ", "das Haus", "\u4f60\u3002" * 3]
    assert limited.translate(lines) == ["", "der ? die ? ?", "das Haus", "???"]


def test_what_is_asked_of_a_whole_line_leaves_it_whole():
    limited = dataclasses.replace(translator(), source_lines=TWO_SENTENCES)
    line = ONE * 3
    asked = [{"prefixes": ["rot"]}, {"terms": [["rot"]]}]
    for one in asked:
        (found,) = limited.translations([line], **one)
        assert found.num_parts == 1
    parser = dataclasses.replace(limited, is_parser=True)
    assert parser.translations([line])[0].num_parts == 1
    always = dataclasses.replace(
        limited, config=dataclasses.replace(CONFIG, segment="sentences")
    )
    (found,) = always.translations([line], prefixes=["rot"])
    assert found.num_parts == 3
    assert found.text.startswith("rot")


def test_a_model_of_unknown_lines_splits_none():
    segments = make_segments([ONE * 5], translator().vocabularies, CONFIG)
    assert len(segments) == 1


def test_comparisons_are_of_lines_as_they_are():
    always = DecodingConfig(segment="sentences")
    assert protocol_decoding(always).segment == "lines"
    for greedy in (True, False):
        assert search_config(always, greedy=greedy).segment == "lines"
    model, line = recurrent(5, V, eos_bias=1.0), ONE + TWO
    development = make_translate(
        lambda params: model,
        vocabularies=translator().vocabularies,
        config=dataclasses.replace(CONFIG, segment="sentences"),
    )
    (found,) = development({}, [line])
    assert [found.text] == translator(model, segment="lines").translate([line])
    assert [found.text] != translator(model, segment="sentences").translate([line])


def test_no_output_is_empty_unless_it_may_be():
    silent = recurrent(3, V, eos_bias=60.0)
    for settings in ({}, {"sample": True}, {"beam_rule": "shrinking"}):
        may_be = translator(silent, min_tokens=0, **settings)
        (nothing,) = may_be.translations(["der Hund"])
        assert (nothing.text, nothing.status) == ("", "no_output")
        (something,) = translator(silent, **settings).translations(["der Hund"])
        assert something.text
        assert something.status == "ok"


def test_outputs_much_shorter_than_their_source_are_marked():
    brief = recurrent(3, V, eos_bias=60.0)
    ten = "der " * 10
    found = translator(brief).translations(["der " * 9, ten, ten * 2])
    assert [one.num_tokens for one in found] == [2, 2, 4]
    assert [one.short for one in found] == [False, True, True]
    assert found[2].statuses == ("short", "chunked")
    assert translator().translations([ten])[0].statuses == ("ok",)
