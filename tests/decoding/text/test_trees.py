"""`decoding.constraint=tree`, from lines of words to trees."""

import pytest

from t2t_jax.data.trees.linearization import delinearize
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.errors import ConfigError, DataError
from tests.decoding.models import recurrent
from tests.decoding.words import WORDS, V, WordVocabulary, translator

SYMBOLS = "(S )S (NP )NP (VP )VP XX".split()
CONFIG = DecodingConfig(
    beam_size=2,
    max_extra_tokens=8,
    max_source_length=16,
    tokens_per_batch=84,
    constraint="tree",
)


class Symbols(WordVocabulary):
    """A symbol of a tree is a piece."""

    size = 4 + len(SYMBOLS)

    def decode(self, sequences):
        return [" ".join(self.pieces(sequence)) for sequence in sequences]

    def pieces(self, ids):
        return [["<pad>", "<s>", "</s>", "<unk>", *SYMBOLS][token] for token in ids]


def parser(**changes):
    model = recurrent(1, V)  # of more tokens than there are symbols
    size = Symbols.size
    model = model.replace(out=model.out[:, :size], bias=model.bias[:size])
    config = {**vars(CONFIG), **changes}
    words = VocabularyPair(WordVocabulary(), Symbols())
    return Translator(model, words, DecodingConfig(**config))


def test_every_line_becomes_a_tree_over_its_words():
    lines = [" ".join(WORDS[:number]) for number in (3, 1, 0, 9, 6)]
    for line, found in zip(lines, parser().translations(lines), strict=True):
        if line:
            tree = delinearize(found.text.split(), line.split())
            assert tree.words() == line.split()
            assert found.status == "ok"


@pytest.mark.parametrize(
    ("line", "options", "message"),
    [
        ("die " * 20, {}, "Line 3: it has more than 15 subwords and would be split"),
        ("die\u200b \u200b " * 9, {}, "a tree over its 18 words needs 21 tokens"),
        ("die", {"prefixes": ["das"]}, "does not support prefixes"),
    ],
)
def test_a_line_without_room_for_its_tree_is_refused(line, options, message):
    with pytest.raises(DataError, match=message):
        parser().translations([line], first=2, **options)


def test_a_vocabulary_of_words_is_none_of_trees():
    with pytest.raises(DataError, match="has 0 labels that open and close"):
        translator(constraint="tree").translations(["die"])


@pytest.mark.parametrize(
    "changes",
    [{"sample": True}, {"max_extra_tokens": 2}, {"min_tokens": 2}],
)
def test_settings_that_leave_no_room_for_a_tree_are_refused(changes):
    with pytest.raises(ConfigError):
        parser(**changes)
    assert parser(max_extra_tokens=3).config.constraint == "tree"
