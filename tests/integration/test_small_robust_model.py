"""From two text files to a package, as docs/how_to/small_robust_model.md goes the way.

Teacher and student count in German, so that their translations are text.
"""

import re
import zipfile

import pytest

import t2t_jax
from tests.docs.commands import blocks, run_shell
from tests.exchange.exporting.counting import WORDS, write_text
from tests.int8 import QUANTIZATION
from tests.integration import tiny

ctranslate2 = pytest.importorskip("ctranslate2")
spm = pytest.importorskip("sentencepiece")

SIZES = {
    **dict(list(tiny.TINY.items())[2:]),
    **{"vocabulary.size": 330, "model.dropout": 0.0, "data.dev_pairs": 8},
    **{"optimizer.peak_learning_rate": 0.01, "optimizer.warmup_steps": 50},
    **{"steps": 240, "evaluation.every_steps": 240, "checkpoint.every_steps": 40},
}
FLAGS = "".join(f" --config.{key}={value}" for key, value in SIZES.items())
CHANGES = {
    "own_text:medium": f"own_text:medium{FLAGS}",
    "own_text:student": f"own_text:student{FLAGS} --config.decoding.beam_size=1",
    "=int8": f"={QUANTIZATION} --check_lines=3 --max_bleu_loss=100",
    # The sizes are those of the test.
    "  --config.model.d_model=128 --config.model.d_ff=512 --config.model.d_k=32 "
    "--config.model.d_v=32 \\\n": "",
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """The directory in which the commands of the page were run, and what they said."""
    place = tmp_path_factory.mktemp("reader")
    write_text(place)
    for language, wrong in (("en", "one 4 two"), ("de", "eins 5 zwei")):
        text = (place / f"a.{language}").read_text()
        (place / f"train.{language}").write_text(f"{text}{wrong}\n")
        head = "".join(text.splitlines(keepends=True)[:9])
        (place / f"test.{language}").write_text(head)
    page = (tiny.ROOT / "docs/how_to/small_robust_model.md").read_text("utf-8")
    said = []
    assert all(old in page for old in CHANGES)
    for block in blocks(page):
        code = block.code
        for old, new in CHANGES.items():
            code = code.replace(old, new)
        said.append("" if block.skipped else run_shell(code, place))
    return place, said


def test_the_report_has_what_a_filter_drops_and_the_table_each_change(reader):
    _, report, teacher, _, student, *_ = reader[1]
    assert re.search(
        r"^ +1 with other numbers, by data.filters=digits$", report, re.MULTILINE
    )
    assert "one 4 two" in report
    for table in (teacher, student):
        rows = re.findall(r"^(\S.*?)  +(\d+\.\d\d)  +\d+\.\d\d", table, re.MULTILINE)
        assert [row[0] for row in rows][:4] == ["unchanged", "lower", "upper", "title"]


def test_the_package_translates_as_the_student(reader):
    place, said = reader
    assert "Train it longer" in "".join(said)
    assert "different beams: --mode=evaluate --beam_size=4" in said[5]
    table = [line.split() for line in said[5].splitlines()]
    for name in ("teacher-mean", "student", "student-int8"):
        quality, cost = (row for row in table if row[:1] == [name])
        assert (len(quality), len(cost)) == (9, 4)
    with zipfile.ZipFile(place / "en_de.argosmodel") as package:
        package.extractall(place / "package")
    (folder,) = (place / "package").iterdir()
    pieces = spm.SentencePieceProcessor(str(folder / "sentencepiece.model"))
    translator = ctranslate2.Translator(str(folder / "model"))
    lines = [f"{one} {two}" for one in WORDS for two in WORDS if one != two]
    found = [
        pieces.decode(one.hypotheses[0])
        for one in translator.translate_batch(
            pieces.encode(lines, out_type=str), beam_size=1
        )
    ]
    student = t2t_jax.load(place / "runs/student")
    assert found == student.translate(lines)
    right = [" ".join(WORDS[word] for word in line.split()) for line in lines]
    assert sum(a == b for a, b in zip(found, right, strict=True)) > 10
