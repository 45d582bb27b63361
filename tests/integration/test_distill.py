"""From a large model to a small one, as docs/how_to/distillation.md goes the way.

The teacher counts in German; the student of a few steps cannot.
"""

import gzip
import json
import re
import shutil

import pytest

from t2t_jax.main import main
from t2t_jax.run.workdir import Workdir
from tests.docs.commands import blocks, run_shell
from tests.exchange.exporting.counting import WORDS
from tests.int8 import QUANTIZATION
from tests.integration import tiny

pytest.importorskip("ctranslate2")

PAGE = tiny.ROOT / "docs/how_to/distillation.md"
SIZES = {
    **dict(list(tiny.TINY.items())[2:]),
    "vocabulary.size": 60,
    "data.dev_pairs": 8,
    **{"evaluation.every_steps": 12, "checkpoint.every_steps": 12},
}
FLAGS = "".join(f" --config.{key}={value}" for key, value in SIZES.items())
CHANGES = {
    "own_text:student": f"own_text:student{FLAGS}",
    "own_text:small": f"own_text:small{FLAGS}",
    "=int8": f"={QUANTIZATION} --check_lines=3 --max_bleu_loss=100",
    "runs/de-en": "runs/large",
}


def rows_of(path):
    text = gzip.decompress(path.read_bytes()).decode()
    return [line.split("\t") for line in text.splitlines()]


@pytest.fixture(scope="module")
def reader(counting, tmp_path_factory):
    """The directory in which the commands of the page were run, and what they said."""
    place = tmp_path_factory.mktemp("reader")
    shutil.copytree(counting, place / "runs/large")
    for language in ("en", "de"):
        text = (counting.parent / f"a.{language}").read_text()
        for stem in ("train", "mine"):
            (place / f"{stem}.{language}").write_text(text)
        head = "".join(text.splitlines(keepends=True)[:9])
        (place / f"test.{language}").write_text(head)
    said, page = [], PAGE.read_text(encoding="utf-8")
    assert all(old in page for old in CHANGES)
    for block in blocks(page):
        code = block.code
        for old, new in CHANGES.items():
            code = code.replace(old, new)
        said.append(run_shell(code, place))
    return place, said


def test_the_teachers_pairs_are_right_and_train_a_student(reader):
    place, _ = reader
    rows = rows_of(place / "distilled/pairs.tsv.gz")
    likely = [{*row[1].split()} <= {WORDS[x] for x in row[0].split()} for row in rows]
    assert sum(likely) > 0.9 * len(rows) > 100
    student = Workdir(place / "runs/student").read_config()
    assert student.data.train.endswith("/distilled/pairs.tsv.gz")
    report = json.loads((place / "runs/student/data.json").read_text())
    assert report["train"]["counts"]["read"] == len(rows) - 8


def test_an_export_is_a_teacher_too(reader):
    place, _ = reader
    names = ("distilled", "distilled-int8")
    rows = [rows_of(place / name / "pairs.tsv.gz") for name in names]
    own, other = ({row[0]: row[1] for row in some} for some in rows)
    assert len(own.keys() ^ other.keys()) < 0.1 * len(own)
    alike = [own[source] == other[source] for source in own.keys() & other.keys()]
    assert sum(alike) > 0.8 * len(alike)


def test_the_table_has_the_teacher_beside_the_student_and_its_export(reader):
    table = [line.split() for line in reader[1][0].splitlines()]
    names = ("large", "student", "student-int8")
    scores, costs = ([r for r in table if r[:1] == [name]] for name in names), {}
    for name, (quality, cost) in zip(names, scores, strict=True):
        costs[name] = float(cost[3])
        assert re.fullmatch(r"[\d,]+\.\d", cost[2])
        assert len(quality) == 9
        if name == "large":
            assert float(quality[1]) > 50
            assert quality[3:5] == ["—", "—"]
        else:
            assert float(quality[3]) < -50
            assert float(quality[4]) < 0.05
    assert costs["student"] > 4e-6 * 60 * 16  # the embedding alone, in float32


def test_text_that_was_translated_back_is_the_tagged_source(reader):
    place, _ = reader
    config = Workdir(place / "runs/tagged").read_config()
    assert config.data.train.endswith("/back/pairs.tsv.gz#2,1#<BT>")
    sources = set((place / "mine.de").read_text().splitlines())
    assert {row[0] for row in rows_of(place / "back/pairs.tsv.gz")} <= sources
    pieces = json.loads((place / "runs/tagged/vocab.json").read_text())["pieces"]
    assert "<BT>" in pieces


@pytest.mark.parametrize(
    ("names", "code", "message"),
    [
        (("student-int8", "runs/student"), 66, "must follow the run or model that it"),
        (("runs/student", "large-int8"), 65, "is damaged, or an export of another"),
    ],
)
def test_an_export_must_follow_its_model(reader, capsys, names, code, message):
    place, _ = reader
    directories = ",".join(f"{place}/{name}" for name in names)
    files = (f"--{name}={place}/test.en" for name in ("source", "reference"))
    assert main(["--mode=compare", f"--workdirs={directories}", *files]) == code
    assert message in capsys.readouterr().err
