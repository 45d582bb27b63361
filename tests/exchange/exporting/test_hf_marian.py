"""A MarianMTModel computes what the model computes, and comes back bit by bit.

Seen to fail: with matrices that are not permuted, or not transposed; without the stored
positions; with the biases of another order.
"""

import dataclasses
import json

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.exchange.exporting.huggingface import HFMarianFormat
from t2t_jax.exchange.importing.hf_marian import is_hf_marian, read_hf_marian
from t2t_jax.exchange.importing.imported import ImportOptions
from t2t_jax.model.config import TransformerConfig
from t2t_jax.types import BOS, PAD
from tests.exchange.exporting import counting
from tests.exchange.hf_directory import WORDS, spm
from tests.exchange.importing.imported_config import as_search, config_of
from tests.model.tiny import tiny_apply, tiny_params
from tests.reference import huggingface

pytest.importorskip("safetensors")

SIZE = 22
TINY = TransformerConfig(
    vocab_size=SIZE, num_layers=2, d_model=12, d_ff=19, num_heads=3, d_k=4, d_v=4
)

VARIANTS = {
    "the paper's": {},
    "biases, nothing tied, unscaled, unequal depths": {
        "tying": "none",
        "activation": "gelu",
        "layer_norm_epsilon": 1e-5,
        "attention_biases": True,
        "output_bias": True,
        "scale_embeddings": False,
        "num_decoder_layers": 1,
    },
    "fairseq's": {
        "tying": "decoder",
        "activation": "swish",
        "layer_norm_epsilon": 1e-5,
        "attention_biases": True,
        "position_rates": "tensor2tensor",
        "first_position": 2,
        "start": "eos",
    },
}


def vocabulary():
    return Vocabulary.train(WORDS, SIZE)


def original(changes=(), *, vocabularies=None, **more):
    network = dataclasses.replace(TINY, **dict(changes))
    vocabularies = vocabularies or VocabularyPair(*[vocabulary()] * 2)
    decoding = DecodingConfig(
        max_source_length=30, max_extra_tokens=10, beam_size=3, min_tokens=2
    )
    more |= {"vocabularies": vocabularies, "decoding": decoding}
    return counting.original(network, languages=("en", "de"), **more)


def written(tmp_path, one):
    from safetensors.numpy import load_file

    counting.write_export(tmp_path, HFMarianFormat(), one)
    config = json.loads((tmp_path / "config.json").read_text())
    return load_file(tmp_path / "model.safetensors"), config


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_are_those_of_the_model(tmp_path, variant):
    one = original(VARIANTS[variant])
    tensors, config = written(tmp_path, one)
    source, target = [5, 7, 11, 13, 2], [config["decoder_start_token_id"], 8, 9, 6]
    epsilon = one.config.model.layer_norm_epsilon
    found = huggingface.logits(source, target, tensors, config, epsilon=epsilon)
    inputs = np.array([source]), np.array([[BOS, *target[1:]]])
    wanted = tiny_apply(*inputs, config=one.config.model)
    # float32, over four layers
    assert_allclose(found, wanted[0], rtol=0, atol=3e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_comes_back_bit_by_bit(tmp_path, variant):
    one = original(VARIANTS[variant])
    written(tmp_path, one)
    assert is_hf_marian(tmp_path)
    found = read_hf_marian(tmp_path, ImportOptions())
    jax.tree.map(np.testing.assert_array_equal, found.params, one.model.params)
    assert jax.tree.structure(found.params) == jax.tree.structure(one.model.params)
    assert config_of(found).network == one.config.model
    assert found.vocabularies.target.model == one.model.vocabularies.target.model
    assert found.vocabularies.shared
    assert found.languages == ("en", "de")
    search = as_search(beam_size=3, max_extra_tokens=10, min_tokens=2)
    assert found.search.items() >= search.items()
    assert "t2t_jax exported" in found.notes[0]


def test_a_model_that_hf_trained_on_keeps_its_biases(tmp_path):
    from safetensors.numpy import save_file

    tensors, _ = written(tmp_path, original())
    tensors["model.encoder.layers.0.self_attn.q_proj.bias"][3] = 0.5
    save_file(tensors, tmp_path / "model.safetensors")
    found = read_hf_marian(tmp_path, ImportOptions())
    assert found.config["model.attention_biases"]
    assert not found.config["model.output_bias"]
    bias = found.params["encoder"]["layer_0"]["self_attention"]["query"]["bias"]
    assert bias.sum() == 0.5


def test_positions_are_stored_only_if_hf_computes_others(tmp_path):
    name = "model.encoder.embed_positions.weight"
    assert name not in written(tmp_path, original())[0]
    marian = original({"position_rates": "tensor2tensor"})
    assert written(tmp_path, marian)[0][name].shape == (40, 12)


def zero_rows(*ids):
    params = jax.tree.map(np.array, tiny_params(TINY))
    params["embedding"]["table"][list(ids)] = 0
    return params


@pytest.mark.parametrize("token", [PAD, BOS])
def test_a_zero_vector_to_start_with_is_that_of_a_token(tmp_path, token):
    _, config = written(tmp_path, original({"start": "zero"}, params=zero_rows(token)))
    assert config["decoder_start_token_id"] == token
    assert read_hf_marian(tmp_path, ImportOptions()).config["model.start"] == "zero"


def test_the_tokenizer_has_the_ids_of_the_vocabulary(tmp_path):
    written(tmp_path, original())
    ids = json.loads((tmp_path / "vocab.json").read_text())
    assert [*ids] == vocabulary().pieces(range(SIZE))
    assert [*ids.values()] == [*range(SIZE)]
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    assert generation["bad_words_ids"] == [[PAD], [BOS]]
    assert generation["forced_eos_token_id"] is None


def test_tables_of_pieces_are_written_as_they_came(tmp_path):
    pieces = [*SPECIAL_PIECES, ">>de<<", *(f"piece {n}" for n in range(SIZE - 5))]
    table = table_file(
        "sentencepiece_table", pieces, sentencepiece=spm(), language_tokens=True
    )
    source = Vocabulary(table)
    written(tmp_path, original(vocabularies=VocabularyPair(source, source)))
    assert (tmp_path / "source.spm").read_bytes() == spm()
    assert json.loads((tmp_path / "vocab.json").read_text())[">>de<<"] == 4
