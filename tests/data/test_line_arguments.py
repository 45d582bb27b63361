from pathlib import Path

import numpy as np
import pytest

from t2t_jax.api import train
from t2t_jax.data.line_arguments import as_directory, as_lines
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.evaluation import bleu, protocol
from t2t_jax.evaluation.significance import paired_test
from t2t_jax.evaluation.tokenized_bleu import paper_bleu, tokenized_bleu
from t2t_jax.model.transformer import Transformer
from t2t_jax.run.inference.load import load, translate
from t2t_jax.run.inference.model import TranslationModel
from tests.model.tiny import TINY, tiny_params


@pytest.mark.parametrize("log", ["train.log", 7, Path("train.log")])
def test_a_log_that_is_not_a_stream_is_a_type_error(tmp_path, log):
    with pytest.raises(
        TypeError, match=r"takes a log that is None or an open text .*\("
    ):
        train({}, tmp_path / "run", log=log)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "lines", [["a", "b"], (line for line in "ab"), np.array(["a", "b"])]
)
def test_every_ordered_iterable_of_strings_is_taken(lines):
    found = as_lines(lines, caller="translate")
    assert found == ["a", "b"]
    assert [type(line) for line in found] == [str, str]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("The bus", 'sequence of lines, not a str. Pass ["The bus"].'),
        (b"The bus", "not bytes. Pass a list of str."),
        (None, "not None. Pass a list of str."),
        (["a", None], 'lines[1] is None (NoneType). Pass a list of str, with "" for'),
        (["a", float("nan")], 'lines[1] is nan (float). Pass a list of str, with "" '),
    ],
)
def test_what_is_not_lines_is_a_type_error_that_shows_the_fix(lines, message):
    with pytest.raises(TypeError) as caught:
        as_lines(lines, caller="translate")
    assert str(caught.value).startswith("translate takes ")
    assert message in str(caught.value)


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.train(["ab ba"] * 3, 8)


@pytest.fixture(scope="module")
def takers(vocabulary):
    """Calls every public function of lines; none of them gets as far as its model."""
    words = VocabularyPair(vocabulary, vocabulary)
    params = tiny_params()
    model = TranslationModel(Transformer(TINY), params, words, DecodingConfig(), step=1)
    a = ["a"]
    return {
        "model.translate": model.translate,
        "model.translations": model.translations,
        "model.translations, prefixes": lambda x: model.translations(a, prefixes=x),
        "model.translate, prefixes": lambda x: model.translate(a, prefixes=x),
        "model.score, sources": lambda x: model.score(x, a),
        "model.score, targets": lambda x: model.score(a, x),
        "model.encode": model.encode,
        "translate": lambda x: translate("nowhere", x),
        "load, ensemble": lambda x: load("nowhere", ensemble=x),
        "vocabulary.encode": vocabulary.encode,
        "Vocabulary.train": lambda x: Vocabulary.train(x, 8),
        "corpus_scores": lambda x: bleu.corpus_scores(x, a),
        "corpus_scores, references": lambda x: bleu.corpus_scores(a, x),
        "corpus_scores, metrics": lambda x: bleu.corpus_scores(a, a, metrics=x),
        "paper_bleu": lambda x: paper_bleu(x, x, tokenize=str),
        "tokenized_bleu": lambda x: tokenized_bleu(x, a, tokenize=str),
        "baseline": lambda x: tokenized_bleu(a, a, tokenize=str, baseline=x),
        "paired_test": lambda x: paired_test(a, a, baseline=x),
        "fingerprint_lines": protocol.fingerprint_lines,
    }


@pytest.mark.parametrize("lines", ["The bus", b"The bus", None])
def test_no_function_of_lines_takes_a_string_for_its_characters(takers, lines):
    for name, call in takers.items():
        if lines is None and name.endswith(("prefixes", "baseline")):
            continue  # which may be left out
        with pytest.raises(TypeError, match="takes a sequence of ") as caught:
            call(lines)
        assert "Pass" in str(caught.value), name


@pytest.mark.parametrize("path", [None, 3, ["runs"]])
def test_a_directory_is_a_path(path):
    with pytest.raises(TypeError, match=r"load takes the path of a directory, not "):
        as_directory(path, caller="load")
