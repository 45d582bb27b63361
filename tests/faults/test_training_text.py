"""Training text that is not what it should be, given to the real command line."""

import gzip

import pytest

from tests.faults.running import refused
from tests.integration import tiny

UNEVALUATED = {"evaluation__every_steps": 0}
PAIRS = [(f"sentence number {n} .", f"Satz Nummer {n} .") for n in range(200)]


@pytest.fixture
def sides(tmp_path):
    """Good text in two files; each test breaks some of it."""
    tiny.text_of(tmp_path, "train", PAIRS)
    return tmp_path / "train.en", tmp_path / "train.de"


def _train(tmp_path, source, target, **changed):
    """Trains one step; bad text must be found before anything is compiled."""
    text = {
        "data__train": f"text:{source},{target}",
        "vocabulary__size": 60,
        "steps": 1,
        **changed,
    }
    return tiny.run(*tiny.arguments(tmp_path / "run", **text))


def test_unequal_line_counts_name_both(tmp_path, sides):
    _source, target = sides
    with target.open("ab") as file:
        file.write(b"noch einer\n")
    refused(_train(tmp_path, *sides), 65, "train.en has 200", "train.de has 201")


def test_invalid_utf_8_and_nul_name_file_and_line_all_at_once(tmp_path, sides):
    source, target = sides
    dev = f"text:{tmp_path}/no.en,{tmp_path}/no.de"
    for side, number, bad in ((source, 7, b"caf\xe9"), (target, 11, b"null\x00byte")):
        lines = side.read_bytes().split(b"\n")
        lines[number - 1] = bad
        side.write_bytes(b"\n".join(lines))
    done = _train(tmp_path, *sides, data__dev=dev)
    refused(done, done.returncode, "train.en:7:", "train.de:11:", "no.en", "no.de")
    assert done.returncode in (65, 66)


def _missing(side):
    side.unlink()
    return 66


def _directory(side):
    side.unlink()
    side.mkdir()
    return 66


def _empty(side):
    side.write_bytes(b"")
    return 65


def _cut(side):
    side.write_bytes(gzip.compress(side.read_bytes())[:-20])
    side.rename(side.with_suffix(".gz"))
    return 65


@pytest.mark.parametrize("spoil", [_missing, _directory, _empty, _cut])
def test_what_cannot_be_read_is_named(tmp_path, sides, spoil):
    zipped = sides[1].with_suffix(".gz")
    code = spoil(sides[1])
    target = zipped if zipped.exists() else sides[1]
    refused(_train(tmp_path, sides[0], target), code, str(target))


def test_a_corpus_too_small_for_its_vocabulary_names_both_numbers(tmp_path, sides):
    done = _train(tmp_path, *sides, vocabulary__size=5000)
    refused(done, 65, "vocabulary.size=5000", "at most")


def test_odd_but_usable_text_is_trained_on_and_the_dropped_counted(tmp_path, sides):
    # The blank and the huge pair are dropped; CR, U+2028, U+0085, BOM are kept.
    odd = ["\ufeffbom .", "carriage\rreturn .", "line\u2028separator .", "tab\there ."]
    odd += ["", "x " * 500_000, "next\x85line ."]
    text = "".join(f"{line}\r\n" for line in odd).encode()
    sides[0].write_bytes(text + sides[0].read_bytes())
    zipped = tmp_path / "train.gz"
    text = b"ein Satz .\n" * len(odd) + sides[1].read_bytes()
    zipped.write_bytes(gzip.compress(text))
    done = _train(tmp_path, sides[0], zipped, **UNEVALUATED)
    errors = done.stderr.decode()
    assert done.returncode == 0, errors
    assert "207 pairs read, 205 kept, 1 empty, 1 longer" in errors
