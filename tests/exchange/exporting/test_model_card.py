"""What a card says of a model; its head is what Hugging Face's hub reads.

Seen to fail: with scores of the comparison where the development text was scored; with
regions in the languages; with a value that is not quoted.
"""

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
    model=SimpleNamespace(
        module=None, params={}, vocabularies=VocabularyPair(*[Pieces()] * 2)
    ),
    config=CONFIG,
    origin=ORIGIN,
    languages=("en", "fr"),
    directions=[("en", "fr")],
)


def card(form="model_dir", quantization="float32", lines=1000, **changed):
    """Writes a card; what is changed is of the original."""
    return model_card(
        "mine",
        FORMATS[form],
        ORIGINAL._replace(**changed),
        dataclasses.replace(COMPARISON, lines=lines),
        spec=ExportSpec(form, quantization, max_bleu_loss=0.0),
    )


@pytest.mark.parametrize("form", EXPORT_FORMATS)
def test_the_example_is_of_the_models_own_text(form):
    text = card(form)
    assert '["Say \\"yes\\"."]' in text or 'encode("Say \\"yes\\"."' in text
    assert "dog" not in text


def test_what_is_known_stands_in_it_and_nothing_else():
    # Of the text, what was held out is not called training text.
    data = DataConfig(train="text:a.en,a.fr", dev_pairs=1000)
    text = card(config=dataclasses.replace(CONFIG, data=data))
    for words in (
        "# mine\n\nA translation model from en to fr: a Transformer",
        "| step | 3,000 of 5,000 |",
        "| run | unknown |",
        "| train text | `text:a.en,a.fr[1000:]` |",
        "| parameters | 48,197,632 |",
        "997 of 1000",
        r"`nrefs:1\|case:mixed`",  # a bar would begin another column
        "These parameters were not evaluated",
    ):
        assert words in text
    for words in ("mean of the steps", "None", "activation"):
        assert words not in text


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
    for words in ("trained with", "label smoothing", "were not evaluated"):
        assert words not in text


DEVELOPMENT = {"bleu": 31.256, "bleu_signature": "nrefs:1|v:2", "chrf": 55.0}
SCORED = {**ORIGIN, "data": {"dev": {"spec": "text:a"}}, "development": DEVELOPMENT}


def metadata(**changed):
    """Reads the head of a card."""
    yaml = pytest.importorskip("yaml")
    empty, head, _ = card(**changed).split("---\n", 2)
    assert empty == ""
    return yaml.safe_load(head)


# A quantized export has the scores of its own outputs.
@pytest.mark.parametrize(
    "changed",
    [{}, {"form": "ctranslate2", "quantization": "int8", "origin": SCORED}],
    ids=["float32", "int8"],
)
def test_what_is_known_is_in_it_and_nothing_else(changed):
    head = metadata(**changed, directions=[("pt_BR", "zh-Hans")])
    (result,) = head.pop("model-index")[0]["results"]
    assert head["language"] == ["pt", "zh"]
    assert "license" not in head
    name = "test: 1,000 lines, beam 4, length penalty 0"
    assert result["dataset"] == {"type": "test", "name": name}
    (bleu,) = result["metrics"]
    assert bleu == {"type": "bleu", "name": "BLEU nrefs:1|case:mixed", "value": 36.9}


def test_a_bleu_of_few_lines_is_not_the_models_score():
    assert "model-index" in metadata(lines=100)
    assert "model-index" not in metadata(lines=99)


def test_the_hubs_own_library_reads_it():
    hub = pytest.importorskip("huggingface_hub")
    data = hub.ModelCard(card(origin=SCORED, license="mit")).data
    assert (data.license, data.pipeline_tag) == ("mit", "translation")
    bleu, _ = data.eval_results
    assert (bleu.metric_type, bleu.metric_value) == ("bleu", 31.26)
    assert bleu.dataset_name == "text:a"
