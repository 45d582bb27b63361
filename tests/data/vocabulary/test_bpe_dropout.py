"""BPE-dropout is byte-pair encoding at 0, characters at 1, and exact between them.

Seen to fail: with skipped merges counted from the worst one; with the right neighbour's
merge not looked up again; with the row left out of the order of equal merges; with the
key of a word without its number; with one draw for all merges of a word; with pieces
that the vocabulary lacks; with codes merged at one place.
"""

import hashlib
import io
import random
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.vocabulary.bpe_dropout import (
    Ragged,
    load_merges,
    random_keys,
    sample_segmentations,
)
from t2t_jax.data.vocabulary.tokenizers import (
    SPECIAL_PIECES,
    load_tokenizer,
    table_file,
)
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import ConfigError
from t2t_jax.types import EOS, UNK

BASE = np.array([5], np.uint64)
ODD = [
    "",
    "a",
    "  runs   of spaces ",
    "ｆｕｌｌｗｉｄｔｈ ﬁ Å Å ½",
    "Straße 北京 Ωmega 🙂🙂 x🙂y",
    "<s> </s> <unk> <0x41> ▁",
    "<mask>Der<mask> x<mask>y masks",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" * 5,
]


def lines_of(corpus, side):
    return [pair[side] for pair in open_corpus(corpus)]


PHRASES = lines_of("phrasebook:train:400", 0) + lines_of("phrasebook:train:400", 1)


def trained(lines=PHRASES, *, size=300, **options):
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        vocab_size=size,
        **{"model_type": "bpe", "minloglevel": 2, **options},
        **{"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3},
    )
    return written.getvalue()


def sample(model, lines, dropout, *, keys=None, max_length=10_000, table=None):
    """Encodes lines, and segments them anew; returns both as lists of ids."""
    tokenizer = load_tokenizer(model, name="a model", advice="")
    usual = tokenizer.encode(lines, add_eos=True)
    every = Ragged.of(usual)
    tokens, lengths = sample_segmentations(
        every.values,
        every.lengths,
        table=table or load_merges(model, key="data.source_bpe_dropout"),
        dropout=dropout,
        keys=random_keys(BASE, np.arange(len(lines))) if keys is None else keys,
        max_length=max_length,
    )
    ends = np.cumsum(lengths)
    assert ends[-1] == len(tokens)
    return usual, [part.tolist() for part in np.split(tokens, ends[:-1])]


KINDS = {
    "plain": {},
    "few characters": {"character_coverage": 0.98},
    "bytes": {"character_coverage": 0.98, "byte_fallback": True, "size": 500},
    "own symbols": {"user_defined_symbols": ["<mask>", "ch", "q"]},
    "suffixes": {"treat_whitespace_as_suffix": True},
    "phrases": {"split_by_whitespace": False},
}


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return trained(**KINDS[request.param])


def test_without_dropout_it_is_the_encoding_of_sentencepiece(model):
    usual, again = sample(model, PHRASES + ODD, 0.0)
    assert again == usual


def test_the_text_stays_and_words_become_more_pieces(model):
    lines = PHRASES + ODD
    means = []
    for dropout in (0.0, 0.1, 0.3, 0.6, 1.0):
        usual, sampled = sample(model, lines, dropout)
        vocabulary = Vocabulary(model)
        assert vocabulary.decode(sampled) == vocabulary.decode(usual)
        unknown = [[ids.count(UNK) for ids in every] for every in (usual, sampled)]
        assert unknown[0] == unknown[1]
        means.append(np.mean([*map(len, sampled)]))
    assert means == sorted(set(means))


def test_a_sentence_depends_on_nothing_but_its_key(model):
    lines = [*PHRASES[::11], *ODD, *PHRASES[:3], PHRASES[0]]
    keys = random_keys(BASE, np.arange(len(lines)))
    _, together = sample(model, lines, 0.4, keys=keys)
    table = load_merges(model, key="data.source_bpe_dropout")
    for number, line in enumerate(lines):
        mine = keys[number : number + 1]
        assert sample(model, [line], 0.4, keys=mine, table=table)[1] == [
            together[number]
        ]
    assert together[-1] != together[-4]  # the same line with another key


def test_the_words_of_a_sentence_are_sampled_apart():
    model = trained(5 * ["low"] + 2 * ["lower"] + 6 * ["newest"], size=20)
    vocabulary = Vocabulary(model)
    _, (ids,) = sample(model, [" ".join(1009 * ["newest"])], 0.5)
    words = " ".join(vocabulary.pieces(ids[:-1])).split("▁")[1:]
    found = Counter(word.strip() for word in words)
    assert found.total() == 1009
    assert len(found) > 8


def test_a_sentence_that_would_be_too_long_keeps_its_own():
    model = trained()
    usual, free = sample(model, PHRASES, 0.5)
    longest = max(map(len, usual))
    _, bounded = sample(model, PHRASES, 0.5, max_length=longest)
    kept = 0
    for one, other, mine in zip(usual, free, bounded, strict=True):
        kept += len(other) > longest
        assert mine == (one if len(other) > longest else other)
    assert 0 < kept < len(PHRASES) / 2


def by_definition(symbols, merges, dropout, *, whole_pairs):
    """Enumerates algorithm 1: every subset of possible merges that is left."""
    found = Counter()
    places = [n for n, pair in enumerate(pairwise(symbols)) if pair in merges]
    for left in product([False, True], repeat=len(places)):
        share = np.prod([1 - dropout if one else dropout for one in left])
        kept = [place for place, one in zip(places, left, strict=True) if one]
        if not kept:
            found[symbols] += share
            continue
        rank = min(merges[symbols[place : place + 2]] for place in kept)
        best = [n for n in kept if merges[symbols[n : n + 2]] == rank]
        joined, at = [], 0
        while at < len(symbols):
            is_joined = at in (best if whole_pairs else best[:1])
            joined.append("".join(symbols[at : at + 1 + is_joined]))
            at += 1 + is_joined
        after = by_definition(tuple(joined), merges, dropout, whole_pairs=whole_pairs)
        for one, probability in after.items():
            found[one] += share * probability
    return found


def require_shares(found, expected):
    """Checks counts of segmentations within five standard deviations."""
    total = sum(found.values())
    assert found.keys() <= expected.keys()
    for one, share in expected.items():
        bound = 5 * (total * share * (1 - share)) ** 0.5 + 1
        assert abs(found[one] - total * share) < bound, (one, found[one] / total, share)


MANY = 20_011


@pytest.mark.parametrize("dropout", [0.1, 0.5])
@pytest.mark.parametrize("word", ["widest", "low", "newest"])
def test_segmentations_are_as_frequent_as_the_paper_defines(word, dropout):
    words = 5 * ["low"] + 2 * ["lower"] + 6 * ["newest"] + 3 * ["widest"]
    model = trained(words, size=24)
    vocabulary = Vocabulary(model)
    pieces = vocabulary.pieces(range(4, vocabulary.size))
    merges = {
        (piece[:cut], piece[cut:]): rank
        for rank, piece in enumerate(pieces)
        for cut in range(1, len(piece))
    }
    expected = by_definition(tuple(f"▁{word}"), merges, dropout, whole_pairs=False)
    _, sampled = sample(model, MANY * [word], dropout)
    found = Counter(tuple(vocabulary.pieces(ids[:-1])) for ids in sampled)
    require_shares(found, expected)


CODES = [("a", "a"), ("a", "b</w>"), ("aa", "aa"), ("c", "a"), ("ca", "b</w>")]
TABLE = table_file(
    "byte_pairs",
    [
        *(*SPECIAL_PIECES, "a@@", "aa@@", "aaaa@@", "b", "ab", "c@@", "ca@@", "cab"),
        *("a", "aa"),
    ],
    merges=CODES,
)


def test_codes_without_dropout_split_as_before():
    lines = ["aaab cab", "a aa aaa aaaa aaaaa aaaab", "zz cab z", "caaaaaaab", ""]
    usual, again = sample(TABLE, lines, 0.0)
    assert again == usual
    assert UNK in usual[2]


@pytest.mark.parametrize("word", ["aaaab", "cab", "caaab"])
def test_codes_are_skipped_as_subword_nmt_does(word):
    tokenizer = load_tokenizer(TABLE, name="codes", advice="")
    merges = {pair: rank for rank, pair in enumerate(CODES)}
    start = (*word[:-1], f"{word[-1]}</w>")
    expected = by_definition(start, merges, 0.3, whole_pairs=True)
    _, sampled = sample(TABLE, MANY * [word], 0.3)
    found = Counter(
        tuple(
            piece.removesuffix("@@") if piece.endswith("@@") else f"{piece}</w>"
            for piece in tokenizer.pieces(ids[:-1])
        )
        for ids in sampled
    )
    require_shares(found, expected)


def test_no_piece_outside_the_vocabulary_is_made():
    # "ca@@" is not in it: such words keep their usual pieces.
    pieces = [*SPECIAL_PIECES, "c@@", "a@@", "b", "cab", "ab"]
    model = table_file("byte_pairs", pieces, merges=CODES)
    usual, sampled = sample(model, MANY * ["cab"], 0.5)
    found = load_tokenizer(model, name="codes", advice="").decode(sampled)
    assert {*found} == {"cab"}
    assert {tuple(ids) for ids in sampled} >= {tuple(usual[0]), (4, 8, EOS)}


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (lambda: trained(model_type="unigram", size=90), "of type unigram"),
        (lambda: table_file("subwords", [*SPECIAL_PIECES, "a_"]), "kind 'subwords'"),
        (lambda: table_file("byte_pairs", [*SPECIAL_PIECES, "a"], merges=None), "list"),
    ],
)
def test_a_vocabulary_without_merges_is_refused(model, what):
    with pytest.raises(ConfigError, match=f"data.source_bpe_dropout .*{what}.* Set"):
        load_merges(model(), key="data.source_bpe_dropout")


def every_merge():
    """A model of all pairs and threes of four characters, two of each score."""
    model = sentencepiece_model_pb2.ModelProto()
    model.trainer_spec.model_type = 2
    for piece, kind in (("<pad>", 3), ("<s>", 3), ("</s>", 3), ("<unk>", 2)):
        model.pieces.add(piece=piece, score=0, type=kind)
    pieces = (one for size in (2, 3, 1) for one in product("▁abc", repeat=size))
    for number, piece in enumerate(pieces):
        model.pieces.add(piece="".join(piece), score=-(number // 2), type=1)
    return model.SerializeToString()


# A run resumes with the segmentations that it began with: `SAMPLING_VERSION`.
@pytest.mark.parametrize(
    ("model", "dropout", "sha256"),
    [
        (every_merge(), 0.1, "7d8d0e8ddcc30d09"),
        (every_merge(), 0.9, "dfe46292592ab916"),
        (TABLE, 0.1, "a7a443e0dad6301c"),
        (TABLE, 0.9, "7ecf41787bb18f7b"),
    ],
    ids=["pieces 0.1", "pieces 0.9", "codes 0.1", "codes 0.9"],
)
def test_segmentations_are_those_that_were_recorded(model, dropout, sha256):
    drawn = ["".join(random.Random(n).choices("abc ", k=60)) for n in range(100)]
    lines = [" ".join(line.split()) for line in drawn]
    _, sampled = sample(model, lines, dropout, max_length=45)
    assert hashlib.sha256(str(sampled).encode()).hexdigest().startswith(sha256)


def test_with_all_merges_skipped_it_is_characters(model):
    lines = PHRASES[::7]
    usual, sampled = sample(model, lines, 1.0)
    vocabulary = Vocabulary(model)
    whole = {"<mask>", "ch", "q", "</s>", "<unk>"}
    for ids in sampled:
        pieces = vocabulary.pieces(ids)
        assert all(
            len(piece) == 1 or piece in whole or "<0x" in piece for piece in pieces
        )
    assert vocabulary.decode(sampled) == vocabulary.decode(usual)
