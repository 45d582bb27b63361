"""An export translates lines as the model does: parts, tokens, scores and statuses.

Seen to fail: with the eos of an output that has none in its log-probability, and
without prefixes.
"""

import dataclasses

import pytest
from numpy.testing import assert_allclose

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import DataError
from t2t_jax.exchange.exporting.ctranslate2 import CTranslate2Format
from t2t_jax.exchange.exporting.export_translator import with_export
from t2t_jax.model.config import TransformerConfig
from t2t_jax.types import EOS
from tests.exchange.exporting.counting import SIZE, original, write_export
from tests.model.tiny import tiny_params

pytest.importorskip("ctranslate2")

NETWORK = TransformerConfig(
    vocab_size=SIZE, num_layers=1, d_model=16, d_ff=32, output_bias=True
)
# A beam, or a penalty, may choose differently among outputs without an end.
DECODING = DecodingConfig(
    beam_size=1, length_penalty=0.0, max_source_length=12, max_extra_tokens=5
)
LINES = ["one two", "", "five", "one, " * 9, "\ud800 two", "three four", "three four."]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The translator of a model of drawn parameters, and that of its export."""
    params = tiny_params(NETWORK)
    table = params["embedding"]
    bias = table["bias"].at[EOS].add(3.2)  # so that some end
    params = {**params, "embedding": {**table, "bias": bias}}
    one = original(NETWORK, decoding=DECODING, params=params)
    to = tmp_path_factory.mktemp("export")
    write_export(to, CTranslate2Format(), one)
    own = one.model.translator()
    return own, with_export(own, to, one.config), (to, one.config)


@pytest.mark.parametrize("prefixes", [None, ["two", "zwei drei", *[""] * 4, "eins"]])
def test_an_export_gives_the_translations_of_its_model(both, prefixes):
    wanted, found = (
        one.translations(LINES, first=3, prefixes=prefixes) for one in both[:2]
    )
    statuses = {name for one in wanted for name in one.statuses}
    assert {"ok", "empty", "no_eos", "chunked", "invalid_utf8"} <= statuses
    for mine, other in zip(wanted, found, strict=True):
        assert mine.statuses == other.statuses
        assert mine.source_tokens == other.source_tokens
        best, only = mine.hypotheses[0], *other.hypotheses
        assert (best.text, best.tokens, best.num_tokens, best.ended) == (
            *(only.text, only.tokens, only.num_tokens, only.ended),
        )
        numbers = [(one.score, one.log_probability) for one in (best, only)]
        assert_allclose(*numbers, rtol=1e-5)


def test_a_score_has_the_penalty_of_the_configuration(both):
    own = both[1]
    penalized = dataclasses.replace(own.config, length_penalty=0.6)
    for one in dataclasses.replace(own, config=penalized).translations(LINES[:1]):
        divisor = ((5 + one.num_tokens) / 6) ** 0.6
        assert_allclose(one.score, one.log_probability / divisor, rtol=1e-5)


def test_an_export_of_another_vocabulary_is_refused(both):
    own, _, (to, config) = both
    words = Vocabulary.train(["an other text"] * 9, 20)
    other = dataclasses.replace(own, vocabularies=VocabularyPair(words, words))
    smaller = dataclasses.replace(config, vocabulary=VocabularyConfig(size=20))
    for translator, model in ((other, config), (own, smaller)):
        with pytest.raises(DataError, match="an export of another model: its vocab"):
            with_export(translator, to, model)
