"""The code of a card splits and joins text as the vocabularies do."""

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.exchange.exporting.ctranslate2.tokenization import (
    tokenization_of,
    write_tokenizers,
)
from tests.exchange.exporting.test_marian import SIZE, vocabulary

LINE = "one two"


def split_and_join(place, vocabularies, line=LINE):
    """Runs the code without CTranslate2."""
    write_tokenizers(place, vocabularies)
    code = tokenization_of(vocabularies, name=str(place), sentence=repr(line))
    known = {}
    setup = code.setup.replace("import ctranslate2\n", "").replace("ctranslate2, ", "")
    exec(setup, known)
    known["pieces"] = eval(code.encode, known)
    text = eval(code.decode.format("pieces"), known)
    return known["pieces"], text


def test_sentencepiece_reads_its_own_model(tmp_path):
    shared = vocabulary()
    pieces, text = split_and_join(tmp_path, VocabularyPair(shared, shared))
    assert pieces == shared.pieces(shared.encode([LINE])[0])
    assert text == LINE


def test_a_model_inside_a_table_is_a_file_of_its_own(tmp_path):
    own = vocabulary()
    pieces = [*SPECIAL_PIECES, *reversed(own.pieces(range(4, SIZE)))]
    table = Vocabulary(
        table_file(
            "sentencepiece_table",
            pieces,
            sentencepiece=own.model,
            language_tokens=True,
            moses="en",
        )
    )
    both = VocabularyPair(table, own)
    found, text = split_and_join(tmp_path, both)
    assert found == own.pieces(own.encode([LINE])[0])
    assert text == LINE
    note = tokenization_of(both, name="x", sentence="''").note
    assert ">>de<<" in note
    assert 'MosesPunctNormalizer("en")' in note


def test_other_tables_are_read_by_this_package(tmp_path):
    pieces = [*SPECIAL_PIECES, "one", "t@@", "wo"]
    table = Vocabulary(table_file("byte_pairs", pieces, merges=None))
    both = VocabularyPair(table, table)
    found, text = split_and_join(tmp_path, both, line="one t@@ wo")
    assert found == ["one", "t@@", "wo"]
    assert text == LINE
