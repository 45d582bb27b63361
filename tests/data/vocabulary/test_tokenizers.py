import json

import pytest
import sentencepiece

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.sentencepiece_ids import (
    piece_count,
    special_ids,
    with_our_ids,
)
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError
from t2t_jax.types import BOS, EOS, PAD, UNK
from tests.exchange.marian_save import sentencepiece_model

WORDS = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3


@pytest.fixture(scope="module")
def spm() -> bytes:
    """A SentencePiece model in Marian's order: </s> 0, <unk> 1, no pad, no bos."""
    return sentencepiece_model(14, kind="unigram", sentences=WORDS)


def pieces_of(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


def test_a_reordered_model_splits_text_as_before(spm):
    count = piece_count(spm, name="vocab.spm")
    assert special_ids(spm, name="vocab.spm") == (None, None, 0, 1)
    ids = [None, None, 0, 1, *range(2, count)]
    vocabulary = Vocabulary(with_our_ids(spm, ids, name="vocab.spm"))
    assert vocabulary.size == count + 2
    assert vocabulary.pieces(range(4)) == ["<pad>", "<s>", "</s>", "<unk>"]
    foreign = sentencepiece.SentencePieceProcessor(model_proto=spm)
    lines = ["lowest", "newer low", "wider", "ünder", ""]
    encoded = vocabulary.encode(lines)
    assert encoded == [[*map(ids.index, foreign.encode(line))] for line in lines]
    assert UNK in encoded[3]
    assert vocabulary.decode(encoded[:3]) == lines[:3]
    assert vocabulary.decode([[BOS, *encoded[0], EOS, PAD]]) == lines[:1]


def test_a_model_with_pieces_of_our_names_gets_others(spm):
    ids = [None, None, 0, 1, *range(2, piece_count(spm, name=""))]
    once = with_our_ids(spm, ids, name="")
    # Ours are ordinary pieces now, and new ones are asked for.
    again = with_our_ids(once, [None, None, 2, 3, 0, 1, *range(4, 16)], name="")
    assert pieces_of(again)[:6] == ["<<pad>>", "<<s>>", "</s>", "<unk>", "<pad>", "<s>"]


def test_a_table_gives_pieces_their_ids(spm):
    rest = [piece for piece in pieces_of(spm)[2:] if piece != "w"]
    pieces = [*SPECIAL_PIECES, ">>de<<", *reversed(rest)]
    options = {"sentencepiece": spm, "language_tokens": True}
    vocabulary = Vocabulary(table_file("sentencepiece_table", pieces, **options))
    foreign = sentencepiece.SentencePieceProcessor(model_proto=spm)
    (ids,) = vocabulary.encode(["newest lowest w"])
    split = foreign.encode("newest lowest w", out_type=str)
    assert "w" in split
    assert ids == [UNK if one == "w" else pieces.index(one) for one in split]
    lines = [">>de<< lowest", "lowest >>de<<", ">>fr<< lowest"]
    with_token, inside, unknown = vocabulary.encode(lines)
    assert with_token == [4, *vocabulary.encode(["lowest"])[0]]
    assert 4 not in inside
    assert unknown == [UNK, *with_token[1:]]
    assert vocabulary.decode([[BOS, *with_token[1:], EOS]]) == ["lowest"]
    assert vocabulary.decode([with_token]) == [">>de<< lowest"]


def test_punctuation_is_normalized_as_moses_does(spm):
    pytest.importorskip("sacremoses")
    pieces = [*SPECIAL_PIECES, *pieces_of(spm)[2:], '▁"', '"']
    options = {"sentencepiece": spm, "language_tokens": False}
    plain = Vocabulary(table_file("sentencepiece_table", pieces, **options))
    moses = Vocabulary(table_file("sentencepiece_table", pieces, moses="en", **options))
    assert moses.encode(["low,low"]) == plain.encode(["low,low"])
    assert moses.encode(["low  low"]) == plain.encode(["low low"])
    assert moses.encode(["„low“"]) == plain.encode(['"low"'])
    assert plain.encode(["„low“"]) != plain.encode(['"low"'])


def test_pieces_of_the_other_side_are_joined_as_well(spm):
    pieces = [*SPECIAL_PIECES, *pieces_of(spm)[2:], "\u2581other", "side"]
    options = {"sentencepiece": spm, "language_tokens": False}
    vocabulary = Vocabulary(table_file("sentencepiece_table", pieces, **options))
    (ids,) = vocabulary.encode(["low"])
    other = [len(pieces) - 2, len(pieces) - 1]
    assert vocabulary.decode([[*ids, *other, *ids]]) == ["low otherside low"]
    assert vocabulary.decode([[*other, *ids]]) == ["otherside low"]


def test_byte_pairs_without_merges_are_given_in_pieces():
    pieces = [*SPECIAL_PIECES, "lo@@", "w", "er", "w"]
    vocabulary = Vocabulary(table_file("byte_pairs", pieces, merges=None))
    (ids,) = vocabulary.encode(["lo@@ w er est"])
    assert ids == [4, 5, 6, UNK]
    assert vocabulary.decode([[*ids[:3], EOS, PAD]]) == ["low er"]


GOOD = {"version": 1, "kind": "byte_pairs", "pieces": [*SPECIAL_PIECES, "a"]}
SPM = {"kind": "sentencepiece_table"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "its version is 2, not 1"),
        ({"kind": "other"}, "kind 'other' is not known"),
        ({"pieces": [*SPECIAL_PIECES, 5]}, "its pieces are not a list of strings"),
        ({**SPM, "sentencepiece": "?"}, "Only base64 data is allowed"),
        ({**SPM, "sentencepiece": "YWJj"}, "it has no SentencePiece model"),
    ],
)
def test_an_invalid_table_is_an_error(change, message):
    model = json.dumps({**GOOD, **change}).encode()
    with pytest.raises(DataError, match=message):
        Vocabulary(model, name="vocab.model")


def test_two_vocabularies_may_share_their_ids(tmp_path):
    pieces = [*SPECIAL_PIECES, "a@@", "b", "ab"]
    source = Vocabulary(table_file("byte_pairs", pieces, merges=[("a", "b</w>")]))
    target = Vocabulary(table_file("byte_pairs", pieces, merges=[]))
    config = VocabularyConfig(size=7, source_size=7, shared_ids=True)
    assert config.own_source_size == 0
    VocabularyPair(source, target).save(tmp_path)
    loaded = VocabularyPair.load(tmp_path, config=config)
    assert loaded.source.encode(["ab"]) == [[6]]
    assert loaded.target.encode(["ab"]) == [[4, 5]]
    other = Vocabulary(table_file("byte_pairs", [*pieces[:6], "ba"], merges=None))
    with pytest.raises(DataError, match=r"requires the same with the same ids"):
        VocabularyPair(other, target).check(config, name="both")
