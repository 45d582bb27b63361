import pytest

from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.errors import ConfigError, DataError, InputMissingError
from tests.data.trees.sample import SAMPLE


def test_words_become_a_tree():
    corpus = open_corpus(f"trees:{SAMPLE}")
    pairs = list(corpus)
    assert len(pairs) == corpus.num_pairs() == 40
    assert pairs[0] == ("The kettle whistles .", "(S (NP XX XX )NP (VP XX )VP XX )S")
    assert pairs[3][0] == "Mara wanted to paint the shed ."


def test_words_are_parts_of_speech_or_numbers_where_asked_for():
    ends = ("", "#tags", "#numbers")
    corpora = [open_corpus(f"trees:{SAMPLE}{end}") for end in ends]
    assert [next(iter(corpus))[1] for corpus in corpora[1:]] == [
        "(S (NP DT NN )NP (VP VBZ )VP . )S",
        "(S (NP 1 2 )NP (VP 3 )VP 4 )S",
    ]
    assert len({corpus.fingerprint() for corpus in corpora}) == len(ends)


def test_malformed_trees_are_named_by_line_and_counted(tmp_path):
    file = tmp_path / "a.mrg"
    lines = ["(S (NN a))", "(S (NP))", "(S (NN b)", "(S (NN c)))", "(S x y)", "(S"]
    file.write_text("\n".join(lines))
    said = r"a\.mrg:2: .*the bracket \(NP is empty; .* in 2 more lines \(5, 6\)\."
    with pytest.raises(DataError, match=said):
        list(open_corpus(f"trees:{file}"))


def test_a_wrong_spec_is_refused():
    with pytest.raises(ConfigError, match="must name a file"):
        open_corpus("trees:#tags")
    with pytest.raises(ConfigError, match="trees:FILE#tags or trees:FILE#numbers"):
        open_corpus("trees:a.mrg#tag")
    with pytest.raises(InputMissingError, match="no such file"):
        open_corpus("trees:missing.mrg")
