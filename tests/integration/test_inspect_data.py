"""`--mode=inspect_data` with a trained model, as a user runs it."""

import random

import pytest

from tests.exchange.exporting.counting import WORDS
from tests.faults.running import refused
from tests.integration import tiny

PLANTED = {
    "copy": [("two three four", "two three four"), ("one five five", "one five five")],
    "misaligned": [
        ("one one one one", "fünf drei fünf drei"),
        ("five three five three", "zwei zwei vier vier"),
        ("two two four four", "eins eins eins eins"),
    ],
    "language": [("four one two", "quatre une deux"), ("two five", "deux cinq")],
}


def counted(chance, number):
    words = [chance.choices(list(WORDS.items()), k=1 + n % 4) for n in range(number)]
    return [tuple(" ".join(side) for side in zip(*one, strict=True)) for one in words]


@pytest.fixture(scope="module")
def trained(counting, tmp_path_factory):
    """A directory with the run that has learnt to count in German."""
    place = tmp_path_factory.mktemp("inspect")
    (place / "run").symlink_to(counting)
    return place


def flags(trained, *argv):
    return ["--mode=inspect_data", f"--workdir={trained / 'run'}", *argv]


def rows_of(path):
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    names = header.split("\t")
    return [dict(zip(names, row.split("\t"), strict=True)) for row in rows]


def test_planted_pairs_are_on_top_and_dropping_gives_the_counts_said(trained):
    planted = [pair for pairs in PLANTED.values() for pair in pairs]
    pairs = counted(random.Random(1), 193)
    for number, pair in enumerate(planted):
        pairs.insert(17 * number, pair)
    corpus = f"--config.data.train={tiny.text_of(trained, 'noisy', pairs)}"
    to = trained / "pairs.tsv"
    argv = flags(trained, corpus, f"--to={to}", "--drop_worst=3.5%")
    done = tiny.succeed(*argv)
    rows = rows_of(to)
    assert len(rows) == 200
    worst = [(row["source"], row["target"]) for row in rows[:7]]
    assert set(worst) == set(planted)
    assert [int(row["rank"]) for row in rows] == list(range(1, 201))
    lines = [pairs[int(row["line"]) - 1] for row in rows]
    assert lines == [(row["source"], row["target"]) for row in rows]
    findings = {(row["source"], row["target"]): row["findings"] for row in rows}
    for kind, some in PLANTED.items():
        assert any(kind in findings[pair] for pair in some)
    assert all("copy" in findings[pair] for pair in PLANTED["copy"])
    sides = [
        (trained / f"pairs.kept.{side}.txt").read_text(encoding="utf-8").splitlines()
        for side in ("source", "target")
    ]
    assert list(zip(*sides, strict=True)) == [p for p in pairs if p not in planted]
    out = done.stdout.decode()
    assert "200 pairs read, 200 inspected, 200 scored" in out
    assert "dropped 7 of 200 pairs, kept 193" in out
    assert "  copy: 2 before, 0 after" in out
    again = f"--config.data.train=text:{trained}/pairs.kept.source.txt,"
    assert f"{again}{trained}/pairs.kept.target.txt" in out


def test_a_page_and_a_sample_of_the_development_text(trained):
    to = trained / "page.html"
    done = tiny.succeed(*flags(trained, f"--to={to}", "--split=dev", "--lines=7"))
    assert "400 pairs read, 7 inspected" in done.stdout.decode()
    assert to.read_text(encoding="utf-8").count('<tr><th scope="row"') >= 7


@pytest.mark.parametrize(
    ("to", "text", "code", "words"),
    [
        ("x.txt", "tsv:kept.tsv", 64, "must end in .tsv"),
        # The text itself is never overwritten.
        ("kept.tsv", "tsv:kept.tsv", 73, "is one of the input files"),
        ("x.tsv", "text:/no.en,/no.de", 66, "/no.en: no such file"),
    ],
)
def test_mistakes_are_named_before_anything_is_computed(trained, to, text, code, words):
    (trained / "kept.tsv").write_text("one\teins\n", encoding="utf-8")
    argv = flags(trained, f"--to={to}", f"--config.data.train={text}")
    refused(tiny.run(*argv, cwd=trained), code, words)


def test_a_failure_leaves_no_half_a_file(trained, tmp_path):
    broken = tiny.text_of(tmp_path, "broken", counted(random.Random(2), 30))
    with (tmp_path / "broken.de").open("ab") as file:
        file.write(b"\xff\n")
    argv = (f"--to={tmp_path / 'x.tsv'}", "--drop_worst=5%")
    done = tiny.run(*flags(trained, f"--config.data.train={broken}", *argv))
    assert done.returncode == 65, done.stderr.decode()
    assert {path.name for path in tmp_path.iterdir()} == {"broken.de", "broken.en"}
