"""TranslationJob and evaluating by two processes of two devices each."""

import gzip
import json

import pytest

from tests.faults import running
from tests.integration import tiny

LINES = [
    "The old teacher reads a book.",
    "",
    "Two men.",
    "The old teacher reads a red book, and a child helps the famous men.",
    "\u2028 a\u0085b 🙂",
] * 3


@pytest.fixture(scope="module")
def run(tiny_run, tmp_path_factory):
    place = tmp_path_factory.mktemp("together")
    (place / "run").symlink_to(tiny_run)
    packed = gzip.compress(b"".join(b"Two men, %d.\n" % n for n in range(3_000)))
    (place / "cut.gz").write_bytes(packed[: len(packed) // 2])
    (place / "in.en").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return place


def together(*argv, each=((), ()), stdin=b""):
    """Runs two processes: exit code of all, stdout of each, all that was said."""
    ended = running.run_both(
        *argv, each=each, stdin=stdin, devices=2, T2T_JAX_INITIALIZATION_TIMEOUT="60"
    )
    said = "".join(one.stderr.decode() for one in ended)
    (code,) = {one.returncode for one in ended}
    return code, [one.stdout for one in ended], said


def test_two_processes_translate_and_evaluate_as_one_does(run):
    workdir, source = f"--workdir={run / 'run'}", run / "in.en"
    alone = tiny.run("--mode=translate", workdir, f"--input={source}")
    assert alone.stdout.count(b"\n") == len(LINES)

    code, outs, said = together("--mode=translate", workdir, stdin=source.read_bytes())
    assert code == 0, said
    assert outs == [alone.stdout, b""]

    shards = (f"--input={source}", f"--output={run / 'out.de'}", "--shards=3")
    code, outs, said = together("--mode=translate", workdir, *shards)
    assert (code, outs) == (0, [b"", b""]), said
    assert f"Translated {len(LINES)} lines in" in said
    assert (run / "out.de").read_bytes() == alone.stdout
    assert not (run / "out.de.shards").exists()

    (run / "ref.de").write_bytes(b"\n".join([b"Zwei Leute."] * len(LINES)) + b"\n")
    evaluate = ("--mode=evaluate", workdir, f"--source={source}")
    evaluate += (f"--reference={run / 'ref.de'}",)
    scored = tiny.run(*evaluate)
    code, outs, said = together(*evaluate, f"--hypotheses={run / 'hyp.de'}")
    assert code == 0, said
    assert (run / "hyp.de").read_bytes() == alone.stdout
    assert outs[1] == b""
    ours, theirs = json.loads(outs[0]), json.loads(scored.stdout)
    del ours["seconds"], theirs["seconds"]
    assert ours == theirs


OTHER = ("--checkpoint=5", "--config.decoding.beam_size=1")


@pytest.mark.parametrize(
    ("name", "other", "code", "message"),
    [
        # Beyond the first window, which is translated.
        ("cut.gz", (), 65, "broken gzip"),
        ("in.en", OTHER, 78, '"5" and not "best", config.decoding.beam_size is 1'),
    ],
)
def test_a_mistake_of_one_ends_both_with_its_code(run, name, other, code, message):
    argv = ("--mode=translate", f"--workdir={run / 'run'}", f"--input={run / name}")
    before = sorted(path.name for path in run.iterdir())
    to = f"--output={run / 'no.de'}"
    found, outs, said = together(*argv, to, each=((), other))
    assert found == code, said
    assert message in said
    assert "Traceback" not in said
    assert outs == [b"", b""]
    assert sorted(path.name for path in run.iterdir()) == before
