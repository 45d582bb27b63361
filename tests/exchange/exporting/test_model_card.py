import dataclasses
from types import SimpleNamespace

import pytest

from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.exchange.cards import model_card
from t2t_jax.exchange.exporting.base import ExportSpec, Original
from t2t_jax.exchange.exporting.exporter import FORMATS
from t2t_jax.exchange.exporting.verification import Comparison
from t2t_jax.exchange.formats import EXPORT_FORMATS
from t2t_jax.model.config import TransformerConfig
from t2t_jax.version import __version__
from tests.decoding.words import Untagged

COMPARISON = Comparison(
    **{"text": "test", "lines": 1000, "left_out": 0, "equal": 997, "ties": 3},
    **{"largest_gap": 2e-5, "largest_difference": 1.2e-5, "mean_difference": 1e-6},
    **{"bleu": 35.817, "exported_bleu": 35.824, "bleu_signature": "nrefs:1|case:mixed"},
    **{"beam_size": 4, "length_penalty": 0.0, "beam_equal": 995},
    **{"beam_bleu": 36.9, "exported_beam_bleu": 36.9},
)


class Pieces(Untagged):
    """The special pieces of a vocabulary of SentencePiece."""

    model, fingerprint, size = b"a SentencePiece model", "def", 4

    def pieces(self, ids):
        return [["<pad>", "<ß>", "</s>", "<unk>"][id_] for id_ in ids]


CONFIG = Config(
    steps=5000,
    data=DataConfig(train="text:a.en,a.fr"),
    vocabulary=VocabularyConfig(size=8000),
    model=TransformerConfig(vocab_size=8000),
)
ORIGIN = {"step": 3000, "kinds": ["best"], "examples": ['Say "yes".', "No."]}
ORIGINAL = Original(
    model=SimpleNamespace(params={}, vocabularies=VocabularyPair(*[Pieces()] * 2)),
    config=CONFIG,
    origin=ORIGIN,
    languages=("en", "fr"),
)


def card(form="model_dir", quantization="float32", lines=1000, **changed):
    """Writes a card; what is changed is of the original."""
    return model_card(
        "mine",
        FORMATS[form],
        ORIGINAL._replace(**changed),
        dataclasses.replace(COMPARISON, lines=lines),
        spec=ExportSpec(form, quantization),
        max_bleu_loss=0.0,
    )


@pytest.mark.parametrize("form", EXPORT_FORMATS)
def test_the_example_is_of_the_models_own_text(form):
    text = card(form)
    assert '["Say \\"yes\\"."]' in text or 'encode("Say \\"yes\\"."' in text
    assert "dog" not in text


def test_what_is_known_stands_in_it_and_nothing_else():
    text = card()
    for words in (
        "# mine\n\nA translation model from en to fr: a Transformer",
        "| step | 3,000 of 5,000 |",
        "| run | unknown |",
        "| parameters | 48,197,632 |",
        "| subwords (SentencePiece, BPE) | 8,000 |",
        f"| made with | t2t_jax {__version__}, ",
        "997 of 1000",
        "35.82, 35.82",
        r"`nrefs:1\|case:mixed`",  # a bar would begin another column
        "These parameters were not evaluated",
    ):
        assert words in text
    assert "mean of the steps" not in text
    assert "None" not in text
    assert "activation" not in text


def test_text_that_was_held_out_is_not_called_training_text():
    data = DataConfig(train="text:a.en,a.fr", dev_pairs=1000)
    text = card(config=dataclasses.replace(CONFIG, data=data))
    assert "| train text | `text:a.en,a.fr[1000:]` |" in text


@pytest.mark.parametrize(
    ("kinds", "then"),
    [
        (["imported"], ""),
        (["changed", "extended"], ", then changed in JAX, then extended by a language"),
    ],
)
def test_an_imported_model_is_not_called_trained_here(kinds, then):
    imported = {"format": "marian", "files": {"model.npz": "12ab"}}
    origin = {"step": 0, "kinds": kinds, "examples": ["No."], "imported": imported}
    text = card(origin=origin)
    assert f"a Transformer, imported into t2t_jax as marian{then}." in text
    assert "| of the file model.npz, SHA-256 | `12ab` |" in text
    assert "trained with" not in text
    assert "label smoothing" not in text
    assert "were not evaluated" not in text
