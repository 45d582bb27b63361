import re

from word_list import main, words

from t2t_jax.data.corpora.open import open_corpus


def test_the_words_of_the_examples_are_listed():
    listed = words()
    assert {"teacher", "book", "apple", "bird"} <= set(listed["nouns"])
    assert {"read", "have", "wait for", "would like"} <= set(listed["verbs"])
    assert {"old", "tired", "small"} <= set(listed["adjectives"])
    assert {"tomorrow", "often"} <= set(listed["times"])


def test_what_is_listed_is_met_in_the_corpus():
    text = " ".join(
        english for english, _ in open_corpus("phrasebook:train:20000")
    ).lower()
    met = set(re.findall(r"[\w'.]+", text))
    for kind, found in words().items():
        for word in " ".join(found).lower().split() if kind != "verbs" else ():
            assert word in met or f"{word}." in met, word


def test_the_list_is_printed_by_kind(capsys):
    assert main() == 0
    shown = capsys.readouterr().out
    for kind, found in words().items():
        assert f"\n{kind} ({len(found)}): {found[0]}" in shown
    assert max(map(len, shown.splitlines())) <= 80
