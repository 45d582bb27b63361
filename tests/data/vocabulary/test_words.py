import pytest

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.trees.linearization import linearize
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import word_table
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.data.vocabulary.words import learn_words
from t2t_jax.types import UNK
from tests.data.trees.sample import GOLD

CONFIG = VocabularyConfig(size=100, source_size=150, unit="words", source_unit="words")


def pairs():
    for tree in GOLD:
        yield " ".join(tree.words()), " ".join(linearize(tree, words="tags"))


@pytest.fixture(scope="module")
def both() -> VocabularyPair:
    return VocabularyPair.load_or_train(
        list(pairs()), config=CONFIG, seed=0, log=lambda text: None
    )


def test_one_symbol_is_one_token_and_all_come_back(both):
    targets = [target for _, target in pairs()]
    encoded = both.target.encode(targets)
    assert [len(ids) for ids in encoded] == [len(line.split()) for line in targets]
    assert all(UNK not in ids for ids in encoded)
    assert both.target.decode(encoded) == targets


def test_a_word_is_one_token_known_or_not(both):
    (ids,) = both.source.encode(["The  unheardingly Zzzing \t2,047 ."])
    assert len(ids) == 5
    pieces = both.source.pieces(ids)
    assert (pieces[0], pieces[-1]) == ("The", ".")
    assert pieces[1].startswith("<a")


def test_the_same_text_gives_the_same_bytes_in_any_order():
    lines = [source for source, _ in pairs()]
    models = [
        Vocabulary.train(order, CONFIG.size, config=CONFIG, classes=True).model
        for order in (lines, lines[::-1])
    ]
    assert models[0] == models[1]


def test_the_most_specific_known_class_stands_for_a_word():
    text = ["sat sat walked talked jumped ran", "Ada Ada"]
    found = learn_words(text, 16, classes=True)
    assert found.words == ["Ada", "sat"]
    assert found.classes == ["<a>", "<a-d>"]
    model = word_table(found, 8)
    pieces = Vocabulary(model).pieces(Vocabulary(model).encode(["hiked sad 9"])[0])
    assert pieces == ["<a-d>", "<a>", "<unk>"]


def test_text_that_looks_like_a_special_or_an_unused_piece_is_a_word(both):
    assert both.target.encode(["XX </s> <unused_99> <s>"])[0][1:] == [UNK] * 3
    assert not {1, 2, 99} & {*both.source.encode(["</s> <unused_99> <s>"])[0]}
