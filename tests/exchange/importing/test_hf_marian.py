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
from t2t_jax.exchange.importing.imported import ImportOptions
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
from tests.exchange.importing.imported_config import as_search, logits_of
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


RELU = {"activation_function": "relu", "scale_embedding": False}
UNTIED = {"activation_function": "gelu", "tie_word_embeddings": False}
VARIANTS = {
    "one matrix, swish": ({}, {}, {}),
    "trained in HF, relu, separate matrices": ({**SEPARATE, **RELU}, NO_BIAS, {}),
    "untied, gelu": ({**SEPARATE, **UNTIED}, NO_BIAS, {}),
    "as Marian": ({}, {}, {"rates": "marian", "epsilon": 1e-6}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_are_those_of_hf_or_of_marian(tmp_path, variant):
    changes, tensors, marian = VARIANTS[variant]
    config = configuration(**changes)
    tensors = {**draw(config), **tensors}
    write_directory(tmp_path, config, tensors)
    imported = read(tmp_path, positions="marian" if marian else "huggingface")
    source, target = [5, 3, 9, 1, 12, 0], [4, 4, 11, 2]
    ids = foreign_ids()
    inputs = [BOS, *map(ids.index, target)]
    (found,) = logits_of(imported, [[*map(ids.index, source)]], [inputs])
    wanted = huggingface.logits(source, [PAD_ID, *target], tensors, config, **marian)
    # float32, over three layers
    assert_allclose(found[:, 2:], wanted[:, ids[2:]], rtol=0, atol=2e-5)
    assert (found[:, BOS] < -100).all()
    # Marian's models give pad no probability.
    if marian:
        assert (found[:, PAD] < -100).all()
    else:
        assert_allclose(found[:, PAD], wanted[:, PAD_ID], rtol=0, atol=2e-5)
    start = tensors.get("model.shared.weight", np.ones((SIZE, 1)))[PAD_ID].any()
    assert imported.config["model.start"] == ("bos" if start else "zero")


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
    jax.tree.map(np.testing.assert_array_equal, read(directory).params, wanted.params)


def test_settings_of_search_and_languages_are_read(tmp_path):
    directory = write_directory(tmp_path)
    imported = read(directory)
    assert imported.languages == ("en", "de")
    assert {path.name for path in imported.files} == {
        *("config.json", "model.safetensors", "source.spm", "target.spm"),
        *("tokenizer_config.json", "vocab.json"),
    }
    assert imported.search == as_search(
        beam_size=6,
        beam_rule="shrinking",
        length_penalty=1.0,
        length_normalization="power",
        max_extra_tokens=200,
        min_tokens=1,
        max_length_ratio=3.0,
        max_source_length=40,
        allow_unk=False,
    )
    search = {"num_beams": 2, "max_new_tokens": 30, "bad_words_ids": [[PAD_ID]]}
    change_json(directory / "generation_config.json", **search)
    other = read(directory, positions="huggingface").search
    search = as_search(beam_size=2, max_extra_tokens=31, allow_unk=True)
    assert other.items() >= search.items()
    assert "decoding.beam_rule" not in other
    change_json(directory / "generation_config.json", num_beams=1)
    greedy = as_search(beam_size=1, length_penalty=0.0)
    assert read(directory, positions="huggingface").search.items() >= greedy.items()
    change_json(directory / "generation_config.json", bad_words_ids=[[1], [PAD_ID]])
    assert not read(directory, positions="huggingface").config["decoding.allow_unk"]


@pytest.mark.parametrize(
    ("tensors", "has_files", "chosen", "rates", "why"),
    [
        ({}, False, "", "tensor2tensor", "a trained final_logits_bias"),
        ({}, False, "huggingface", "paper", "it was chosen"),
        ({}, True, "", "paper", "files of a training"),
        ({}, True, "marian", "tensor2tensor", "it was chosen"),
        (NO_BIAS, False, "", "paper", "final_logits_bias is zero"),
    ],
)
def test_what_is_known_of_the_training_decides(
    tmp_path, tensors, has_files, chosen, rates, why
):
    config = configuration()
    directory = write_directory(tmp_path, config, {**draw(config), **tensors})
    if has_files:
        (directory / "trainer_state.json").write_text("{}")
    imported = read(directory, positions=chosen)
    assert imported.model["position_rates"] == rates
    assert imported.model["layer_norm_epsilon"] == (1e-5 if rates == "paper" else 1e-6)
    assert why in imported.notes[0]


def test_a_vector_of_its_own_to_start_with_is_kept(tmp_path):
    config = configuration()
    tensors = {**draw(config), **NO_BIAS}
    tensors["model.shared.weight"][PAD_ID] = 0.5
    imported = read(write_directory(tmp_path, config, tensors))
    assert imported.config["model.start"] == "bos"
    table = imported.params["embedding"]["table"]
    assert (table[[PAD, BOS]] == 0.5).all()
    assert imported.params["embedding"]["bias"][BOS] == -200
    config = configuration(decoder_start_token_id=0)
    other = write_directory(tmp_path / "eos", config, tensors)
    assert read(other).config["model.start"] == "eos"


def test_pieces_have_the_ids_of_the_table(tmp_path):
    imported = read(write_directory(tmp_path))
    source, target = imported.vocabularies
    assert imported.config["vocabulary.shared_ids"]
    (found,) = source.encode([">>de<< newest lower"])
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm())
    split = processor.encode("newest lower", out_type=str)
    ids = [vocabulary()[piece] for piece in (">>de<<", *split)]
    assert [foreign_ids()[id_] for id_ in found] == ids
    assert UNK not in found
    assert target.decode([[*found[1:], EOS]]) == ["newest lower"]
    assert "such as `>>de<<`" in " ".join(imported.notes)


def test_a_target_may_have_its_own_vocabulary(tmp_path):
    size = SIZE + 2
    config = configuration(**SEPARATE, decoder_vocab_size=size)
    directory = write_directory(tmp_path, config)
    table = {**vocabulary(), "more": SIZE, "and more": SIZE + 1}
    change_json(directory / "target_vocab.json", **table)
    change_json(directory / "tokenizer_config.json", separate_vocabs=True)
    imported = read(directory)
    sizes = {"size": size + 1, "source_size": SIZE + 1, "shared_ids": False}
    wanted = {f"vocabulary.{name}": value for name, value in sizes.items()}
    assert imported.config.items() >= wanted.items()
    assert len(imported.params["source_embedding"]["table"]) == SIZE + 1
    assert len(imported.params["target_embedding"]["table"]) == size + 1


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
