"""Checkpoints of tensor2tensor, beside a NumPy transcription of its model.

Seen to fail: with shards in the order of their names, without the target space, with
the paper's rates, where missing ids have probability, and with ids as they are.
"""

import gzip
import json
import shutil

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.data.vocabulary.tensor2tensor import SubwordEncoder
from t2t_jax.errors import DataError
from t2t_jax.exchange.importing.imported import DEFAULTS, ImportOptions
from t2t_jax.exchange.importing.importer import find_format
from t2t_jax.exchange.importing.tensor2tensor import is_t2t, read_t2t
from t2t_jax.exchange.importing.vocabularies import t2t_vocabularies
from t2t_jax.exchange.readers.tensorflow_checkpoint import read_tensorflow_checkpoint
from tests.exchange.hf_directory import change_json
from tests.exchange.importing.imported_config import (
    greedy_translator,
    logits_of,
    without_mean,
)
from tests.exchange.real_models import real_file
from tests.exchange.t2t_state import SUBWORDS, State, hparams_of, write, write_subwords
from tests.reference import tensor2tensor as reference

# In tensor2tensor's ids, of which eos is 1.
SENTENCES = [([5, 7, 3, 9, 1], [8, 9, 6, 10]), ([4, 1], []), ([4, 13, 1], [3, 5, 28])]


UNTIED = {"shared_embedding_and_softmax_weights": False}
POST_NORM = {"layer_preprocess_sequence": "none", "layer_postprocess_sequence": "dan"}
POST_NORM |= {"num_decoder_layers": 0}
OTHER_ORDER = {"layer_postprocess_sequence": "d a"}


def ids(tokens):
    """Our ids: eos is 2, and bos and unk are new."""
    return [2 if token == 1 else token + 2 for token in tokens]


def check(imported, model, sentences=SENTENCES):
    sources, inputs = zip(*((ids(a), [1, *ids(b)]) for a, b in sentences), strict=True)
    found = np.asarray(jax.nn.log_softmax(logits_of(imported, sources, inputs)))
    found = found[..., [0, *ids(range(1, found.shape[-1] - 2))]]
    for row, (source, targets) in zip(found, sentences, strict=True):
        logits = model.logits(source, np.array(targets, int))
        totals = np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        # float32 sums over two layers of width 12, against float64
        expected = logits - totals
        assert_allclose(row[: len(targets) + 1], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "space", "tying"),
    [
        ({}, 8, "decoder"),
        ({"symbol_modality_num_shards": 1}, None, "all"),
        ({**POST_NORM, **UNTIED, "multiply_embedding_mode": "none"}, 0, "none"),
        ({"attention_key_channels": 6, **OTHER_ORDER}, 3, "decoder"),
    ],
)
def test_a_model_computes_what_tensor2tensor_does(tmp_path, changes, space, tying):
    hparams = hparams_of(**changes)
    tensors = State(hparams, space=space).tensors
    imported = read_t2t(write(tmp_path, tensors, hparams), ImportOptions())
    check(imported, reference.Model(tensors, hparams, space=space))
    assert imported.config["model.tying"] == tying
    assert imported.config["model.start"] == "zero"
    assert find_format(tmp_path) == "t2t"
    assert imported.vocabularies.shared
    assert [file.name for file in imported.files] == [
        *("hparams.json", "model.ckpt-7.index", "model.ckpt-7.data-00000-of-00002"),
        *("model.ckpt-7.data-00001-of-00002", "vocab.translate_ende.30.subwords"),
    ]


def test_source_and_target_may_have_vocabularies_of_their_own(tmp_path):
    for changes, tying in (({}, "decoder"), (UNTIED, "none")):
        hparams = hparams_of(vocab_divisor=4, **changes)
        tensors = State(hparams, sizes=(36, 32)).tensors
        path = write(tmp_path, tensors, hparams)
        target, source = tmp_path / "vocab.translate_ende.30.subwords", tmp_path / "s"
        write_subwords(source, [*SUBWORDS, "er_", "st_", "es", "ow_"])
        imported = read_t2t(path, ImportOptions(vocabularies=(source, target)))
        check(imported, reference.Model(tensors, hparams, space=8, sizes=(36, 32)))
        assert imported.config["model.tying"] == tying
        assert imported.config["vocabulary.source_size"] == 38
        assert imported.config["vocabulary.size"] == 34
        vocabulary, lines = imported.vocabularies.target, ["low, 12 slow"]
        assert vocabulary.decode(vocabulary.encode(lines)) == lines


def test_a_vocabulary_of_tokens_is_given_in_tokens(tmp_path):
    """As in translate_ende_wmt_bpe32k, where the last is UNK."""
    tokens = ["<pad>", "<EOS>", "lo@@", "w", "new", "UNK"]
    hparams = hparams_of(vocab_divisor=4)
    path = write(tmp_path, State(hparams, sizes=(8,)).tensors, hparams)
    (tmp_path / "vocab.bpe").write_text("".join(f"{token}\n" for token in tokens))
    imported = read_t2t(path, ImportOptions())
    vocabulary = imported.vocabularies.target
    assert vocabulary.pieces(range(3, 9)) == ["<unk>", "lo@@", "w", "new", " 6", " 7"]
    assert vocabulary.encode(["new lo@@ w old 6"]) == [[6, 4, 5, 3, 3]]
    assert vocabulary.decode([[6, 4, 5]]) == ["new low"]
    assert "given in its tokens" in imported.notes[0]


def varied(tensors, hparams):
    prefix = f"transformer/symbol_modality_{len(SUBWORDS)}_12/softmax/weights_0"
    model = reference.Model({**tensors, prefix: np.eye(12)}, hparams, space=8)
    mean = model.logits([5, 7, 9, 1], np.arange(2, len(SUBWORDS))).mean(axis=0)
    return {**tensors, prefix: without_mean(tensors[prefix], mean)}


def test_greedy_translation_is_tensor2tensors(tmp_path):
    hparams, extra = hparams_of(**UNTIED, symbol_modality_num_shards=1), 9
    tensors = varied(State(hparams, seed=14).tensors, hparams)
    imported = read_t2t(write(tmp_path, tensors, hparams), ImportOptions())
    translator = greedy_translator(imported, extra)
    model = reference.Model(tensors, hparams, space=8)
    encoder = SubwordEncoder(SUBWORDS, num_reserved=2)
    lines = ["low", "sea to low", "lower, lowest.", "a 12", "was", "to_o"]
    expected, outputs = [], []
    for line in lines:
        source = encoder.encode(line)
        outputs.append(reference.greedy(model, [*source, 1], most=len(source) + extra))
        expected.append(encoder.decode(outputs[-1]))
    assert translator.translate(lines) == expected
    assert len({len(set(one)) for one in outputs}) > 2


def published(folder, size):
    """Unpacks a vocabulary of tensor2tensor's own translations."""
    packed = real_file(f"models/t2t/vocab.translate_ende_wmt{size}.subwords.gz")
    path = folder / f"vocab.{size}.subwords"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


def test_a_checkpoint_of_tensor2tensor_itself_computes_what_it_did(tmp_path):
    """The transcription reads the 250 tensors by itself, with other code."""
    folder = real_file("models/t2t/hparams.json").parent
    vocabulary = published(tmp_path, "8k.8192")
    imported = read_t2t(folder, ImportOptions(vocabularies=(vocabulary,)))
    tensors = read_tensorflow_checkpoint(folder / "model.ckpt-1")
    assert len(tensors) == 250
    hparams = json.loads((folder / "hparams.json").read_text())
    model = reference.Model(tensors, hparams, space=8)
    sentences = [([5, 700, 8189, 9, 1], [8, 4096, 6, 10]), ([4000, 1], [])]
    check(imported, model, sentences)
    assert "target space 8" in imported.notes[0]
    assert imported.config["model.relu_dropout"] == 0.1
    assert imported.config["vocabulary.size"] == 8192


@pytest.mark.parametrize("size", ["8k.8192", "32k.32768"])
def test_the_published_vocabularies_give_1000_lines_back(tmp_path, size):
    path = published(tmp_path, size)
    found = t2t_vocabularies(tmp_path, given=(path,), sizes=(), divisor=1)
    for name in ("train.de.gz", "train.en.gz"):
        text = gzip.decompress(real_file(f"multi30k/{name}").read_bytes()).decode()
        lines = text.split("\n")[:500]
        vocabulary = found.pair.target
        encoded = vocabulary.encode(lines)
        assert vocabulary.decode(encoded) == lines
        assert min(min(ids, default=4) for ids in encoded) >= 4


def small(folder, *, slots=True):
    hparams = hparams_of(num_hidden_layers=1, num_decoder_layers=1)
    state = State({**hparams, "symbol_modality_num_shards": 3}, slots=slots)
    return write(folder, state.tensors, hparams)


def test_the_named_checkpoint_is_read_or_that_of_most_steps(tmp_path):
    prefix = small(tmp_path)
    for file in list(tmp_path.glob("model.ckpt-7.*")):
        for step in ("9", "10"):
            shutil.copy(file, tmp_path / file.name.replace("-7", f"-{step}"))
    for path, marked, step in (
        (tmp_path, "/train/model.ckpt-7", 7),
        (tmp_path, "gone", 10),
        (tmp_path / "model.ckpt-9.index", "gone", 9),
    ):
        (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "{marked}"\n')
        assert read_t2t(path, DEFAULTS).files[1].name == f"model.ckpt-{step}.index"
    assert not is_t2t(tmp_path / "checkpoint")
    assert not is_t2t(prefix.with_name("model.ckpt-8"))


def test_the_target_space_must_be_known(tmp_path):
    small(tmp_path, slots=False)
    with pytest.raises(DataError, match="shows 0 trained target spaces, not one"):
        read_t2t(tmp_path, DEFAULTS)
    change_json(tmp_path / "hparams.json", target_space_id=32)
    with pytest.raises(DataError, match="target_space_id=32 is not a number below 32"):
        read_t2t(tmp_path, DEFAULTS)
    change_json(tmp_path / "hparams.json", target_space_id=8)
    assert "space 8" in read_t2t(tmp_path, DEFAULTS).notes[0]
