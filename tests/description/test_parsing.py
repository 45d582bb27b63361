"""What trains on trees is compared with the parsers of §6.3, not with translation."""

import dataclasses

import pytest

from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.description.departures import departures, matches
from t2t_jax.description.parsing import paper_model
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.resume_rules import differences
from tests.configs.test_configs import _config

TREES = DataConfig(train="trees:a.mrg#tags", dev="trees:b.mrg#tags")
# As the paper prints it.
MODEL = TransformerConfig(num_layers=4, d_model=1_024, d_k=128, d_v=128)
SEARCH = DecodingConfig(beam_size=21, length_penalty=0.3, max_extra_tokens=300)


def parser(**sections):
    given = {
        "data": TREES,
        "model": MODEL,
        "decoding": SEARCH,
        "vocabulary": VocabularyConfig(size=16_000),
    }
    return dataclasses.replace(Config(), **{**given, **sections})


def chosen(config):
    return {d.key: (d.paper, d.here) for d in departures(config) if d.key}


def test_numbers_for_words_are_a_choice():
    data = DataConfig(train="trees:a.mrg#numbers", dev="trees:b.mrg#numbers")
    assert chosen(parser(data=data)) == {
        "data.train": (
            "unspecified (§6.3); the same for all in reference 37",
            "the number of each word in its sentence",
        )
    }


def test_the_model_as_the_paper_prints_it_departs_in_nothing_by_choice():
    assert chosen(parser()) == {}
    assert chosen(parser(vocabulary=VocabularyConfig(size=32_000))) == {}
    names = [match.name for match in matches(parser())]
    assert {"model", "embeddings", "beam search", "learning rate"} <= {*names}
    assert len(names) == len(matches(Config())) + 1


@pytest.mark.parametrize(
    ("key", "value", "printed", "here", "lost"),
    [
        ("model.num_layers", 6, "4 (§6.3)", "6", "model"),
        ("model.d_model", 512, "1,024 (§6.3)", "512", "model"),
        ("model.d_ff", 4_096, "2,048", "4,096", "model"),
        ("model.num_heads", 16, "8", "16", "model"),
        ("decoding.beam_size", 4, "21", "4", "beam search"),
        ("decoding.length_penalty", 0.6, "0.3", "0.6", "beam search"),
        ("decoding.max_extra_tokens", 50, "source + 300", "source + 50", "beam search"),
        ("decoding.constraint", "tree", "none", "each is one tree", "beam search"),
        ("vocabulary.size", 37_000, "16K", "37,000", "embeddings"),
        ("steps", 7, "100,000", "7", None),
    ],
)
def test_each_choice_is_compared_with_section_6_3(key, value, printed, here, lost):
    base = parser()
    section, _, name = key.rpartition(".")
    given = {name: value}
    if section:
        given = {section: dataclasses.replace(getattr(base, section), **given)}
    config = dataclasses.replace(base, **given)
    found = chosen(config)
    assert list(found) == [key]
    assert found[key][0].startswith(printed)
    assert found[key][1].startswith(here)
    left = [match.name for match in matches(config)]
    assert left == [match.name for match in matches(base) if match.name != lost]


@pytest.mark.parametrize("name", ["parsing_wsj", "parsing_semi"])
def test_the_shipped_configs_of_the_paper_depart_in_what_it_leaves_open(name):
    assert {*chosen(_config(name))} == {
        *("data.max_length", "model.tying"),
        *("vocabulary.source_size", "vocabulary.unit"),
    }


def test_differences_are_those_from_the_paper_s_parser():
    config = parser()
    keys = [key for key, *_ in differences(paper_model(config), config)]
    assert keys == ["data.train", "data.dev"]
    for tokens, printed in ((32_000, 32_000), (16_000, 16_000), (9_000, 16_000)):
        config = parser(vocabulary=VocabularyConfig(size=tokens))
        assert paper_model(config).vocabulary.size == printed
    assert paper_model(Config(steps=3)) == Config()
