import dataclasses

import pytest

from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.exporting.model_card import ModelCardFacts, model_card
from t2t_jax.exporting.verification import Comparison
from t2t_jax.model.config import RNNConfig, TransformerConfig

COMPARISON = Comparison(
    text="test",
    lines=1000,
    left_out=0,
    equal=997,
    ties=3,
    largest_gap=2e-5,
    largest_difference=1.2e-5,
    mean_difference=1e-6,
    bleu=35.817,
    exported_bleu=35.824,
    beam_size=4,
    beam_equal=995,
    beam_bleu=36.9,
    exported_beam_bleu=36.9,
    bleu_signature="nrefs:1|case:mixed",
)
FACTS = ModelCardFacts(
    name="mine",
    format="model_dir",
    config=Config(
        steps=5000,
        data=DataConfig(train="text:a.en,a.fr"),
        vocabulary=VocabularyConfig(size=8000),
        model=TransformerConfig(vocab_size=8000),
    ),
    origin={"step": 3000, "kinds": ["best"], "examples": ['Say "yes".', "No."]},
    comparison=COMPARISON,
    quantization="float32",
    max_bleu_loss=0.0,
    suppressed=["<pad>", "<ß>"],
    params_sha256="abc",
    vocabulary_sha256="def",
    versions={"t2t_jax": "1.0", "jax": "0.10"},
)


def card(**changed):
    return model_card(dataclasses.replace(FACTS, **changed))


def test_the_accepted_loss_of_bleu_is_recorded():
    accepted = "| accepted loss of BLEU | 2.5 |"
    assert accepted in card(max_bleu_loss=2.5)


@pytest.mark.parametrize("form", ["model_dir", "safetensors", "ctranslate2"])
def test_the_example_is_of_the_models_own_text(form):
    text = card(format=form)
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
        "| made with | t2t_jax 1.0, jax 0.10 |",
        "997 of 1000",
        "35.82, 35.82",
        r"`nrefs:1\|case:mixed`",  # a bar would begin another column
        "These parameters were not evaluated",
    ):
        assert words in text
    assert "mean of the steps" not in text
    assert "None" not in text


def test_text_that_was_held_out_is_not_called_training_text():
    data = DataConfig(train="text:a.en,a.fr", dev_pairs=1000)
    text = card(config=dataclasses.replace(FACTS.config, data=data))
    assert "| train text | `text:a.en,a.fr[1000:]` |" in text


def test_scores_of_the_development_text_come_with_their_signatures():
    scores = {
        "bleu": 31.256,
        "bleu_signature": "s|t",
        "perplexity": 4.9,
        "sentences": 9,
    }
    text = card(origin={**FACTS.origin, "development": scores})
    assert r"| BLEU | 31.26 `s\|t` |" in text
    assert "| perplexity (not smoothed) | 4.90 |" in text
    assert "chrF |" not in text


def test_a_mean_names_its_steps_and_text_its_pairs():
    corpus = {"spec": "text:a.en,a.fr", "fingerprint": "f", "pairs": 29000}
    origin = {**FACTS.origin, "averaged_steps": [1000, 3000], "data": {"train": corpus}}
    text = card(origin=origin)
    assert "| mean of the steps | 1,000, 3,000 |" in text
    assert "| train text | `text:a.en,a.fr`, 29,000 pairs |" in text


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("model_dir", "With t2t_jax, installed from its sources:"),
        ("safetensors", "installed from its sources, with the extra `export`:"),
        ("ctranslate2", "pip install ctranslate2 sentencepiece"),
    ],
)
def test_each_form_reports_how_it_is_used(form, words):
    text = card(format=form)
    assert words in text
    assert ("has 2,048 positions" in text) == (form == "ctranslate2")


def test_ctranslate2_is_asked_for_what_the_check_asks_it_for():
    text = card(format="ctranslate2")
    for words in (
        "max_input_length=0,",
        "max_decoding_length=min(len(pieces) + 50, 2048),",
        'suppress_sequences=[["<pad>"], ["<ß>"]],',
    ):
        assert f"\n    {words}\n" in text


def test_a_source_with_its_own_subwords_names_their_file():
    vocabulary = VocabularyConfig(size=8000, source_size=500)
    model = TransformerConfig(vocab_size=8000, source_vocab_size=500, tying="decoder")
    config = dataclasses.replace(FACTS.config, vocabulary=vocabulary, model=model)
    text = card(format="ctranslate2", config=config)
    assert 'SentencePieceProcessor("mine/vocab_source.model")' in text
    assert "8,000 (source: 500)" in text


def test_the_recurrent_baseline_has_its_own_figures():
    config = dataclasses.replace(
        FACTS.config, architecture="rnn", rnn=RNNConfig(vocab_size=8000)
    )
    text = card(config=config)
    assert "a LSTM" not in text
    assert "an LSTM" in text
    assert "num_heads" not in text
