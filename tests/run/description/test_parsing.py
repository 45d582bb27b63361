"""What trains on trees is compared with the parsers of §6.3, not with translation."""

import dataclasses

import pytest

from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.description.departures import departures, matches
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
        ("decoding.beam_size", 4, "21", "4", "beam search"),
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
