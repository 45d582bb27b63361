"""MarianMTModels become ours, with the same logits.

Seen to fail: without the permutation of coordinates; with weights that are not
transposed; with Marian's wavelengths and HF's exchanged; with the ids of the
SentencePiece models; with a pad row that takes probability in Marian's models.
"""

import json

import jax
import numpy as np
import pytest
import sentencepiece
from numpy.testing import assert_allclose

from t2t_jax.errors import DataError
from t2t_jax.exchange.importing import hf_settings as settings
from t2t_jax.exchange.importing.hf_marian import is_hf_marian, read_hf_marian
from t2t_jax.exchange.importing.hf_settings import position_table
from t2t_jax.exchange.importing.imported import ImportOptions
from t2t_jax.model.architectures import make_module
from t2t_jax.types import BOS, EOS, PAD, UNK
from tests.exchange import torch_save
from tests.exchange.hf_directory import (
    change_json,
    configuration,
    draw,
    spm,
    vocabulary,
    write_directory,
)
from tests.exchange.importing.imported_config import config_of
from tests.reference import huggingface

pytest.importorskip("safetensors")

SIZE = len(vocabulary())
PAD_ID = SIZE - 1
SEPARATE = {"share_encoder_decoder_embeddings": False}
NO_BIAS = {"final_logits_bias": np.zeros((1, SIZE), np.float32)}


def read(directory, **options):
    return read_hf_marian(directory, ImportOptions(**options))


def foreign_ids(size=SIZE, pad=PAD_ID):
    """HF's id of each of ours."""
    return [pad, None, 0, 1, *range(2, size - 1)]


def logits_of(imported, source, target_inputs):
    """Logits of an imported model for HF's ids: [T, V] by our ids."""
    ours = {theirs: own for own, theirs in enumerate(foreign_ids())}
    tokens = [BOS, *(ours[id_] for id_ in target_inputs[1:])]
    apply = make_module(config_of(imported).network).apply
    inputs = np.array([[ours[id_] for id_ in source]]), np.array([tokens])
    with jax.default_matmul_precision("highest"):
        return np.asarray(apply({"params": imported.params}, *inputs))[0]


VARIANTS = {
    "one matrix, swish": ({}, {}),
    "trained in HF, relu, separate matrices": (
        {**SEPARATE, "activation_function": "relu", "scale_embedding": False},
        NO_BIAS,
    ),
    "untied, gelu": (
        {**SEPARATE, "tie_word_embeddings": False, "activation_function": "gelu"},
        NO_BIAS,
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_are_those_of_hf(tmp_path, variant):
    changes, tensors = VARIANTS[variant]
    config = configuration(**changes)
    tensors = {**draw(config), **tensors}
    imported = read(write_directory(tmp_path, config, tensors), positions="huggingface")
    source, target_inputs = [5, 3, 9, 1, 12, 0], [PAD_ID, 4, 4, 11, 2]
    found = logits_of(imported, source, target_inputs)
    wanted = huggingface.logits(source, target_inputs, tensors, config)
    own = foreign_ids()
    own[BOS] = 0  # compared below
    some = [number for number in range(SIZE + 1) if number != BOS]
    # float32, over three layers
    assert_allclose(
        found[:, some], wanted[:, [own[number] for number in some]], rtol=0, atol=2e-5
    )
    start = tensors.get("model.shared.weight", np.ones((SIZE, 1)))[PAD_ID].any()
    assert imported.config["model.start"] == ("bos" if start else "zero")
    assert (found[:, BOS] < -100).all()


def test_models_of_marian_have_its_positions_and_no_probability_of_pad(tmp_path):
    config = configuration()
    tensors = draw(config)
    imported = read(write_directory(tmp_path, config, tensors))
    assert imported.config["model.position_rates"] == "tensor2tensor"
    source, target_inputs = [5, 3, 9, 1, 12, 0], [PAD_ID, 4, 4, 11, 2]
    found = logits_of(imported, source, target_inputs)
    wanted = huggingface.logits(
        source, target_inputs, tensors, config, rates="marian", epsilon=1e-6
    )
    assert_allclose(found[:, 2:], wanted[:, foreign_ids()[2:]], rtol=0, atol=2e-5)
    assert (found[:, [PAD, BOS]] < -100).all()


def same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("save", [torch_save.save_zip, torch_save.save_legacy])
def test_both_files_of_weights_are_the_same_model(tmp_path, save):
    config = configuration()
    tensors = draw(config)
    wanted = read(write_directory(tmp_path / "a", config, tensors))
    directory = write_directory(tmp_path / "b", config, tensors)
    (directory / "model.safetensors").unlink()
    # Earlier versions stored every name of a matrix.
    for name in ("lm_head", "model.encoder.embed_tokens", "model.decoder.embed_tokens"):
        tensors[f"{name}.weight"] = tensors["model.shared.weight"]
    entries = {name: torch_save.Tensor(one) for name, one in tensors.items()}
    save(directory / "pytorch_model.bin", entries)
    assert is_hf_marian(directory)
    same(read(directory).params, wanted.params)


def test_settings_of_search_and_languages_are_read(tmp_path):
    directory = write_directory(tmp_path)
    imported = read(directory)
    assert imported.languages == ("en", "de")
    assert {path.name for path in imported.files} == {
        *("config.json", "model.safetensors", "source.spm", "target.spm"),
        *("tokenizer_config.json", "vocab.json"),
    }
    decoding = {
        key.removeprefix("decoding."): value
        for key, value in imported.config.items()
        if key.startswith("decoding.")
    }
    assert decoding == {
        "beam_size": 6,
        "beam_rule": "shrinking",
        "length_penalty": 1.0,
        "length_normalization": "power",
        "max_extra_tokens": 200,
        "max_length_ratio": 3.0,
        "max_source_length": 40,
        "min_tokens": 1,
        "allow_unk": False,
    }
    (directory / "generation_config.json").write_text(
        json.dumps({"num_beams": 2, "max_new_tokens": 30, "bad_words_ids": [[PAD_ID]]})
    )
    other = read(directory, positions="huggingface").config
    assert other["decoding.beam_size"] == 2
    assert other["decoding.max_extra_tokens"] == 31
    assert other["decoding.allow_unk"]
    assert "decoding.beam_rule" not in other
    change_json(directory / "generation_config.json", bad_words_ids=[[1], [PAD_ID]])
    assert not read(directory, positions="huggingface").config["decoding.allow_unk"]


TRAINED = [
    ({}, False, "", "tensor2tensor", "a trained final_logits_bias"),
    ({}, False, "huggingface", "paper", "it was chosen"),
    ({}, True, "", "paper", "files of a training"),
    ({}, True, "marian", "tensor2tensor", "it was chosen"),
    (NO_BIAS, False, "", "paper", "final_logits_bias is zero"),
]


@pytest.mark.parametrize(("tensors", "has_files", "chosen", "rates", "why"), TRAINED)
def test_what_is_known_of_the_training_decides(
    tmp_path, tensors, has_files, chosen, rates, why
):
    config = configuration()
    directory = write_directory(tmp_path, config, {**draw(config), **tensors})
    if has_files:
        (directory / "trainer_state.json").write_text("{}")
    imported = read(directory, positions=chosen)
    assert imported.model["position_rates"] == rates
    epsilon = 1e-5 if rates == "paper" else 1e-6
    assert imported.model["layer_norm_epsilon"] == epsilon
    assert why in imported.notes[0]


@pytest.mark.parametrize("rates", ["paper", "tensor2tensor"])
@pytest.mark.parametrize("first", [0, 2])
def test_stored_positions_are_recognized(tmp_path, rates, first):
    config = configuration()
    tensors = {**draw(config), **NO_BIAS}
    for stack in ("encoder", "decoder"):
        tensors[f"model.{stack}.embed_positions.weight"] = position_table(
            40, config["d_model"], rates=rates, first=first
        )
    directory = write_directory(tmp_path, config, tensors)
    found = read(directory, positions="huggingface").config
    assert found["model.position_rates"] == rates
    assert found["model.first_position"] == first


def test_a_vector_of_its_own_to_start_with_is_kept(tmp_path):
    config = configuration()
    tensors = {**draw(config), **NO_BIAS}
    tensors["model.shared.weight"][PAD_ID] = 0.5
    imported = read(write_directory(tmp_path, config, tensors))
    assert imported.config["model.start"] == "bos"
    table = imported.params["embedding"]["table"]
    assert (table[[PAD, BOS]] == 0.5).all()
    assert imported.params["embedding"]["bias"][BOS] == -200
    other = write_directory(
        tmp_path / "eos", configuration(decoder_start_token_id=0), tensors
    )
    assert read(other).config["model.start"] == "eos"


def test_pieces_have_the_ids_of_the_table(tmp_path):
    imported = read(write_directory(tmp_path))
    source, target = imported.vocabularies
    assert imported.config["vocabulary.shared_ids"]
    ids = foreign_ids()
    (found,) = source.encode([">>de<< newest lower"])
    names = {number: piece for piece, number in vocabulary().items()}
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm())
    split = processor.encode("newest lower", out_type=str)
    assert [names[ids[id_]] for id_ in found] == [">>de<<", *split]
    assert UNK not in found
    assert target.decode([[*found[1:], EOS]]) == ["newest lower"]
    assert "such as `>>de<<`" in " ".join(imported.notes)


def test_a_target_may_have_its_own_vocabulary(tmp_path):
    size = SIZE + 2
    config = configuration(**SEPARATE, decoder_vocab_size=size)
    directory = write_directory(tmp_path, config)
    table = {**vocabulary(), "more": SIZE, "and more": SIZE + 1}
    (directory / "target_vocab.json").write_text(json.dumps(table))
    change_json(directory / "tokenizer_config.json", separate_vocabs=True)
    imported = read(directory)
    assert imported.config["vocabulary.size"] == size + 1
    assert imported.config["vocabulary.source_size"] == SIZE + 1
    assert not imported.config["vocabulary.shared_ids"]
    shapes = jax.tree.map(np.shape, imported.params)
    assert shapes["source_embedding"]["table"][0] == SIZE + 1
    assert shapes["target_embedding"]["table"][0] == size + 1


def test_punctuation_is_normalized_if_it_is_asked_for(tmp_path):
    pytest.importorskip("sacremoses")
    directory = write_directory(tmp_path)
    plain, normalizing = read(directory), read(directory, normalize=True)
    text = ["lowest  lower"]  # a space that SentencePiece keeps apart otherwise
    both = [one.vocabularies.source.encode(text) for one in (plain, normalizing)]
    assert "--normalize" in " ".join(plain.notes)
    assert "--normalize" not in " ".join(normalizing.notes)
    assert normalizing.vocabularies.source.model != plain.vocabularies.source.model
    assert both[0] == both[1]


REFUSED = {
    "config.json": {
        **dict.fromkeys(settings._REQUIRED, "another"),
        **{"activation_function": "gelu_new", "decoder_attention_heads": 4},
        **{"tie_word_embeddings": False, "decoder_vocab_size": 3, "d_model": 13},
        **{"encoder_layers": 0, "vocab_size": "20", "scale_embedding": 1},
        **{"pad_token_id": None, "decoder_start_token_id": 1_000},
        **{"eos_token_id": [0, 1], "length_penalty": -1.0, "num_beams": 0},
        **{"do_sample": True, "bad_words_ids": [[4, 5]], "forced_eos_token_id": 5},
    },
    "generation_config.json": {
        **dict.fromkeys(settings._NEUTRAL, "another"),
        **{"eos_token_id": 5, "decoder_start_token_id": 5, "pad_token_id": 5},
        **{"early_stopping": "always", "max_new_tokens": 0},
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_of_another_model_or_search_are_refused_by_name(tmp_path, name):
    path = write_directory(tmp_path, configuration()) / name
    intact = json.loads(path.read_text()) if path.exists() else {}
    for key, value in REFUSED[name].items():
        path.write_text(json.dumps({**intact, key: value}))
        with pytest.raises(DataError, match=rf"{key}=.* is not supported, only"):
            read(tmp_path)
    # An ordinary token may be produced.
    path.write_text(json.dumps({**intact, "bad_words_ids": [[5]]}))
    with pytest.raises(DataError, match="bad_words_ids"):
        read(tmp_path)
