"""The files of an evaluation that are not a text and its translation."""

from types import SimpleNamespace

import pytest

from t2t_jax.cli.evaluation.corpus import read_corpus, warn_of_exchange
from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.data.token_cache.known_words import KnownWords, distinct_hashes
from t2t_jax.errors import DataError

LINES = [f"line {number}" for number in range(10)]


@pytest.fixture
def read(place):
    """Reads the files of an evaluation; returns nothing."""

    def read(**texts):
        for name, lines in texts.items():
            if isinstance(lines, list):
                lines = "".join(f"{line}\n" for line in lines).encode()
            (place / name).write_bytes(lines)
        flags = [f"--{name}={name}" for name in texts]
        read_corpus(parse_argv(["--mode=evaluate", "--workdir=run", *flags]))

    return read


@pytest.mark.parametrize(("same", "warned"), [(10, True), (3, True), (2, False)])
def test_sources_that_are_their_references_are_warned_of(read, capsys, same, warned):
    reference = [*LINES[:same], *(f"Zeile {n}" for n in range(same, 10))]
    read(source=LINES, reference=reference)
    said = capsys.readouterr().err
    assert said.count("warning") == warned
    if warned:
        files = f"--source=source and --reference=reference ({same}0%)"
        assert f"{same} of the 10 pairs of {files} have the same text on both" in said


def test_a_baseline_that_is_the_reference_is_warned_of_once(read, capsys):
    other = [f"Zeile {n}" for n in range(10)]
    read(source=LINES, reference=other, baseline=other)
    assert "10 of the 10 pairs of --baseline=baseline and " in capsys.readouterr().err


def test_utf_16_and_equal_faults_are_named(read):
    with pytest.raises(DataError) as caught:
        read(source="a\nb\n".encode("utf-16"), reference=b"a\n\xff\n\xfe\n")
    first, second = caught.value.problems
    assert "source: is UTF-16 and not UTF-8" in first
    assert "reference:2: invalid UTF-8 (byte 0xff in column 1); the same" in second


ENGLISH, GERMAN = ["The dog barks."], ["Der Hund bellt."]
OTHERS = ["A 27-inch monitor flickers."]


@pytest.mark.parametrize(
    ("pair", "warned"),
    [
        ((ENGLISH, GERMAN), False),
        ((GERMAN, ENGLISH), True),
        ((OTHERS, GERMAN), False),  # of another domain
        ((["The dog sleeps."], ENGLISH), False),  # a third of the words
    ],
)
def test_exchanged_files_are_warned_of(capsys, pair, warned):
    model = SimpleNamespace(known_words=KnownWords(distinct_hashes(ENGLISH)))
    warn_of_exchange(model, pair)
    assert ("look exchanged" in capsys.readouterr().err) == warned
    warn_of_exchange(SimpleNamespace(known_words=None), pair)
    assert not capsys.readouterr().err
