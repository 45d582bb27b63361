"""StableHLO programs translate and score like their model, with JAX alone.

Seen to fail: with another alpha in the program; with one number of the parameters
changed; with a search that ends before the cache grows.
"""

import dataclasses
import json
import re
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.modes import export
from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.search.beam_search import beam_search
from t2t_jax.devices.sharding.rules import leaves_by_path
from t2t_jax.exchange.exporting import stablehlo as stablehlo
from t2t_jax.model.architectures import make_module, step_model
from t2t_jax.run.inference.load import load
from tests.decoding.words import Untagged
from tests.docs.commands import run_python
from tests.exchange.exporting.counting import write_model, write_text
from tests.model.tiny import SOURCE, TINY, TINY_RNN, rnn_params

pytest.importorskip("flatbuffers")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The directory of a model that was never trained."""
    place = tmp_path_factory.mktemp("stablehlo")
    corpus = write_text(place)
    config = Config(
        data=DataConfig(train=corpus, dev=corpus, max_length=24),
        vocabulary=VocabularyConfig(size=44),
        model=dataclasses.replace(
            TINY, num_layers=1, vocab_size=44, positions="learned", max_positions=67
        ),
        decoding=DecodingConfig(
            **{"beam_size": 3, "length_penalty": 0.9, "max_source_length": 24},
            **{"max_extra_tokens": 40, "max_length_ratio": 9.0},
        ),
    )
    return write_model(place / "model", config, corpus=corpus)


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    place = tmp_path_factory.mktemp("exported") / "a model"
    flags = ["--format=stablehlo", f"--to={place}", "--check_lines=20"]
    export.run(parse_argv(["--mode=export", f"--workdir={model}", *flags]))
    return place


# Runs a script where the package and its libraries cannot be imported.
ALONE = """
import sys
for name in ("t2t_jax", "flax", "orbax", "optax"):
    sys.modules[name] = None
"""


def run_alone(script, place):
    return run_python(ALONE + script, place).rstrip("\n")


def test_the_example_of_its_card_translates_without_the_package(model, exported):
    card = (exported / "README.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    assert len([line for line in script.splitlines() if line]) <= 12
    (sentence,) = re.findall(r'source.encode\((".*?")\)', script)
    (wanted,) = load(model).translate([json.loads(sentence)])
    assert run_alone(script, exported.parent) == wanted
    assert "beam 3, alpha 0.9, the exponent of" in card
    assert "at most 40 tokens more than the source, at least 1" in card
    assert "int32 rows of at most 27 tokens" in card


def test_rows_of_any_number_and_length_are_searched_and_scored(model, exported):
    own = load(model, devices=jax.devices()[:1])
    lines = ["one two", "", "three four five one", "two", "five five"]
    pairs = own.translations(lines)
    source = own.encode(lines)
    source[1] = 0  # a row that is not a sentence
    np.save(exported.parent / "source.npy", np.pad(source, ((0, 0), (0, 3))))
    found = json.loads(
        run_alone(
            """
import json, jax, numpy
from jax import export
parameters = dict(numpy.load("a model/parameters.npz"))
source = numpy.load("source.npy")

def program(name):
    return export.deserialize(bytearray(open(f"a model/{name}.stablehlo", "rb").read()))

tokens, scores, lengths = jax.jit(program("model").call)(parameters, source)
logs = jax.jit(program("score").call)(parameters, source, tokens)
values = tokens, scores, lengths, logs.sum(axis=1)
assert program("model").platforms == ("cpu", "cuda", "tpu")
print(json.dumps([value.tolist() for value in values]))
""",
            exported.parent,
        )
    )
    rows = zip(lines, pairs, *found, strict=True)
    assert max(found[2]) > 32  # The cache has grown.
    for line, one, tokens, score, length, log_probability in rows:
        if not line:
            assert length == 0
            continue
        best = one.hypotheses[0]
        assert length == best.num_tokens
        assert own.vocabularies.target.pieces(tokens[:length]) == list(best.tokens)
        # float32 sums of a few tokens, in another order
        assert score == pytest.approx(best.score, rel=1e-5)
        assert log_probability == pytest.approx(best.log_probability, rel=1e-5)


def test_the_configuration_is_described_for_programs(exported):
    facts = json.loads((exported / "config.json").read_text(encoding="utf-8"))
    search = facts["programs"]["model.stablehlo"]["search"]
    given = {"beam_size": 3, "length_penalty": 0.9, "max_extra_tokens": 40}
    assert search.items() >= given.items()
    assert facts["written"] < facts["readable_until"]


def test_a_recurrent_model_is_searched_as_it_is_here():
    module, params = make_module(TINY_RNN), rnn_params()
    both = VocabularyPair(Untagged(), Untagged())
    model = SimpleNamespace(module=module, params=params, vocabularies=both)
    search = stablehlo._search(model, DecodingConfig(min_tokens=0))
    program = stablehlo._lower(search, "b, s", model=model, extra=50)
    found = jax.jit(program.call)(leaves_by_path(params), SOURCE)
    wanted = jax.jit(beam_search)(step_model(module, params), SOURCE)
    best = wanted.tokens_BxWxT, wanted.scores_BxW, wanted.lengths_BxW
    # float32 sums of a few tokens, in another order
    for one, other in zip(found, best, strict=True):
        np.testing.assert_allclose(one, other[:, 0], rtol=1e-5)
