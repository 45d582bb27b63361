"""What Marian would compute from an export is what the model computes.

The second opinion is a transcription in NumPy, tests/reference/marian.py; Marian itself
runs where `pymarian` is installed.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import UserError
from t2t_jax.exchange.exporting.base import ExportSpec
from t2t_jax.exchange.exporting.exporter import without_forbidden_tokens
from t2t_jax.exchange.exporting.marian import MarianFormat
from t2t_jax.exchange.importing.imported import ImportOptions
from t2t_jax.exchange.importing.marian import read_marian
from t2t_jax.model.config import TransformerConfig
from tests.exchange.exporting.counting import SIZE, WORDS, original, vocabulary
from tests.model.tiny import tiny_apply

pytest.importorskip("yaml")

from tests.reference.marian import MarianModel

MODEL = TransformerConfig(
    vocab_size=SIZE,
    num_layers=2,
    num_decoder_layers=1,
    d_model=14,
    d_ff=19,
    num_heads=2,
    d_k=7,
    d_v=7,
    position_rates="tensor2tensor",
    start="zero",
)
GELU = {"activation": "gelu", "tying": "decoder", "output_bias": True}
VARIANTS = {
    "the paper's but for what must be Marian's": {"num_decoder_layers": 0},
    "biases, swish, more layers in the decoder": {
        "attention_biases": True,
        "output_bias": True,
        "activation": "swish",
        "num_decoder_layers": 3,
    },
    "nothing tied": {"tying": "none"},
    "gelu, softmax tied to the target": GELU,
}
SOURCES = [[5, 7, 11, 13, 43], [17, 4], [6, 9, 8]]
TARGETS = [[8, 9, 6, 10, 12, 4], [3, 43], [4, 5, 28, 14]]


def write(to, model=MODEL, **more):
    """Exports drawn parameters, and returns what was exported."""
    exported = without_forbidden_tokens(original(model, **more), unk=False)
    MarianFormat().write(to, exported, ExportSpec("marian"))
    return exported


def padded(rows, *, start=(), end=(2,)):
    filled = np.zeros((len(rows), 8), int)
    for line, row in zip(filled, rows, strict=True):
        ids = [*start, *row, *end]
        line[: len(ids)] = ids
    return jnp.asarray(filled)


def marian_ids(ids):
    """Of ours: Marian's begin with eos and unk, and there are no pad and bos."""
    return [{2: 0, 3: 1}.get(id_, id_ - 2) for id_ in ids]


@pytest.mark.parametrize("changed", VARIANTS.values(), ids=VARIANTS)
def test_marian_finds_every_token_as_probable_as_the_model(tmp_path, changed):
    written = write(tmp_path, dataclasses.replace(MODEL, **changed))
    peer = MarianModel(tmp_path / "model.npz")
    inputs = padded(TARGETS, start=[1], end=[])
    model = {"config": written.config.model, "params": written.model.params}
    logits = tiny_apply(padded(SOURCES), inputs, **model)
    logs_BxTxV = np.asarray(jax.nn.log_softmax(logits))
    for logs_TxV, source, target in zip(logs_BxTxV, SOURCES, TARGETS, strict=True):
        wanted = logs_TxV[np.arange(len(target) + 1), [*target, 2]]
        found = peer.log_probabilities(marian_ids(source), marian_ids(target))
        # float32 sums over three layers of width 14
        assert_allclose(found, wanted, rtol=0, atol=2e-5)
    assert peer.used == set(peer.arrays)
    assert peer.options["dim-vocabs"] == [SIZE - 2, SIZE - 2]


@pytest.mark.parametrize("changed", VARIANTS.values(), ids=VARIANTS)
def test_it_comes_back_bit_by_bit_with_the_same_pieces(tmp_path, changed):
    written = write(tmp_path, dataclasses.replace(MODEL, **changed))
    imported = read_marian(tmp_path, ImportOptions())
    theirs = dict(jax.tree_util.tree_leaves_with_path(imported.params))
    for path, leaf in jax.tree_util.tree_leaves_with_path(written.model.params):
        assert theirs.pop(path).tobytes() == np.asarray(leaf).tobytes(), path
    assert not any(leaf.any() for leaf in theirs.values())
    assert imported.vocabularies.shared == (changed.get("tying", "all") == "all")
    ours, back = vocabulary(), imported.vocabularies.source
    assert back.pieces(range(SIZE)) == ours.pieces(range(SIZE))
    assert back.encode(["one fünf"]) == ours.encode(["one fünf"])
    assert MarianFormat().load(tmp_path, written) is not None


def test_tags_are_refused_as_sentencepiece_makes_none_of_text(tmp_path):
    tagged = Vocabulary.train([*WORDS.values()] * 9, SIZE, target_languages=["de"])
    with pytest.raises(UserError, match="does not support models with tags"):
        write(tmp_path, vocabularies=VocabularyPair(tagged, tagged))


def test_two_vocabularies_are_two_files(tmp_path):
    text = [word for word in WORDS.values() for _ in range(9)]
    config = VocabularyConfig(size=SIZE - 5, character_coverage=1.0)
    source = Vocabulary.train(text, config.size, config=config)
    model = dataclasses.replace(MODEL, source_vocab_size=SIZE - 5, tying="decoder")
    written = write(tmp_path, model, vocabularies=VocabularyPair(source, vocabulary()))
    imported = read_marian(tmp_path, ImportOptions())
    assert [side.size for side in imported.vocabularies] == [SIZE - 5, SIZE]
    for name, part in imported.params.items():
        if name.endswith("embedding"):
            wanted = written.model.params[name]["table"]
            np.testing.assert_array_equal(part["table"], wanted)


@pytest.mark.parametrize("changed", VARIANTS.values(), ids=VARIANTS)
def test_marian_itself_finds_the_same(tmp_path, changed):
    pymarian = pytest.importorskip("pymarian")
    decoding = DecodingConfig(
        beam_size=1, length_penalty=0.0, max_length_ratio=3.0, allow_unk=False
    )
    written = write(tmp_path, dataclasses.replace(MODEL, **changed), decoding=decoding)
    lines = ["one", "two three four", "zwei five", "drei drei vier eins"]
    path = str(tmp_path / "model.npz.decoder.yml")
    peer = pymarian.Translator(config=path, cpu_threads=1, mini_batch=1, quiet=True)
    ours = MarianFormat().load(tmp_path, written).search(lines, greedy=True)
    assert peer.translate(lines) == [one.text for one in ours]


def test_the_same_model_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(tmp_path / name)
    first, second = ((tmp_path / name / "model.npz").read_bytes() for name in "ab")
    assert first == second
