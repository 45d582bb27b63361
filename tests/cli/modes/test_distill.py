"""A teacher that is none translates; what it is asked and what is kept can be seen.

Seen to fail: without the hash of a shard or its number in it, without the comparison of
a file with what is there, and where the worst are counted among pairs that are left
out anyway.
"""

import gzip
import json
import random
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.modes import distill
from t2t_jax.cli.processes import settings_of
from t2t_jax.cli.translation import sharded_job
from t2t_jax.config import Config, parse, to_dict
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.text.translation import EMPTY_TRANSLATION
from t2t_jax.errors import DataError, UserError
from t2t_jax.run.workdir import Workdir
from tests.cli.translations import Killed, Loud, lines_of, loader, said

TEXT = ["a dog barks", "two cats", "", "a dog barks", "x\ty", "one", "two", "three"]
WRITTEN = ["a dog barks", "two cats", "x\ty", "one", "two", "three"]


class Said(Loud):
    """Says what it is told for a line, and else the line, loudly; may be killed."""

    def __init__(self, texts=(), *, scores=(), killed_at=None):
        super().__init__()
        self.texts, self.scores, self.killed_at = dict(texts), dict(scores), killed_at

    def iter_translations(self, lines, *, first=0, **_):
        for number, line in enumerate(lines):
            if first + number == self.killed_at:
                raise Killed
            self.calls.append(line)
            found = said(
                self.texts.get(line, line.upper()), self.scores.get(line, -1.0)
            )
            yield number, found if line else EMPTY_TRANSLATION


def options_of(*argv):
    return parse_argv(["--mode=distill", "--workdir=run", "--to=to", *argv])


def set_tags(monkeypatch, tags, *, reads_source):
    """Gives every model a vocabulary with these tags."""
    side = SimpleNamespace(tags=tags, reads_source=reads_source)
    side.split_tags = partial(Vocabulary.split_tags, side)
    both = SimpleNamespace(source=side)
    monkeypatch.setattr(Workdir, "read_vocabularies", lambda *_: both)


@pytest.fixture
def distilled(place, monkeypatch):
    """Runs the mode with models that it returns, and reads the pairs."""
    for name in ("run", "back"):
        (place / name).mkdir(exist_ok=True)
        if not Workdir(place / name).has_config:
            Workdir(place / name).write_config(Config())
    (place / "in").write_text("\n".join(TEXT) + "\n", encoding="utf-8")
    set_tags(monkeypatch, {"de": 5}, reads_source=False)

    def job(*argv, teacher=None, reverse=None, options=None):
        models = {"run": teacher or Said(), "back": reverse or Said()}

        def load_job(options):
            return loader(models[options.workdir.path.name])(options)

        monkeypatch.setattr(sharded_job, "load_job", load_job)
        distill.run(options or options_of(*argv))
        rows = gzip.decompress(Path("to/pairs.tsv.gz").read_bytes()).decode()
        return [line.split("\t") for line in rows.splitlines()]

    return job


def set_data(place, **changed):
    """Changes the configuration of the teacher."""
    values = to_dict(Config())
    values["data"] |= changed
    (place / "run" / "config.json").unlink()
    Workdir(place / "run").write_config(parse(values))


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in Path(folder).rglob("*")
        if path.is_file()
    }


def test_each_line_is_translated_once_and_stays_with_its_translation(distilled):
    rows = distilled("--sources=in")
    assert lines_of("to/sources.txt") == WRITTEN
    assert [row[:2] for row in rows] == [
        [line.replace("\t", " "), line.upper().replace("\t", " ")] for line in WRITTEN
    ]
    assert [row[2:] for row in rows] == [["-1.0000", str(n)] for n in range(1, 7)]


def test_what_is_left_out_has_a_reason(distilled, capsys):
    lines = [f"the house number {n}" for n in range(40)]
    odd = ["cut", "the same four words", "again", "long one here"]
    short = {
        "New York": "New York",
        "ja": "yes, he is",
        "§ 2000000000": "§ 2.000.000.000",
    }
    Path("in").write_text("\n".join([*lines, *odd, *short]))
    said = {
        **short,
        "cut": "",
        odd[1]: odd[1],
        "again": "ein Haus haus HAUS.",
        "long one here": " ".join("abcdefghijklmnopqrstuvwxyzäöü"),
        lines[3]: "das Haus hat keine Nummer",
    }
    teacher = Said(said, scores={lines[0]: -9.0, odd[1]: -99.0})
    reverse = Said({text.upper(): text for text in lines} | {short["ja"]: "ja"})
    argv = ("--sources=in", "--reverse=back", "--drop_worst=2.5%")
    rows = distilled(*argv, teacher=teacher, reverse=reverse)
    report = json.loads(Path("to/distill.json").read_text())
    found = {name: one["examples"] for name, one in report["dropped"].items()}
    assert found == {
        "failed": [[41, "cut", ""]],
        "copy": [[42, odd[1], odd[1]]],
        "repetition": [[43, "again", said["again"]]],
        "length_ratio": [[44, "long one here", said["long one here"]]],
        "low_score": [[1, lines[0], lines[0].upper()]],
        "low_agreement": [[4, lines[3], said[lines[3]]]],
    }
    assert [len(rows), report["lines"], report["pairs"]] == [41, 47, 41]
    assert {row[0]: row[1] for row in rows}.items() >= short.items()
    assert rows[0][2:] == ["-1.0000", "100.0000", "2"]
    assert reverse.calls[0] == lines[0].upper()
    said = capsys.readouterr().out
    assert "47 lines translated, 41 pairs kept" in said
    assert "line 4: the house number 3 -> das Haus hat keine Nummer" in said
    assert said.endswith("--config.data.train=tsv:to/pairs.tsv.gz\n")


@pytest.mark.parametrize(
    ("tags", "reads_source", "expected"),
    [
        ({}, False, ("", "")),
        ({"en": 4, "de": 5}, False, ("", "en")),
        ({"en": 4, "de": 5}, True, ("de", "en")),
    ],
)
def test_the_reverse_model_is_searched_as_its_own_configuration_says(
    distilled, place, monkeypatch, tags, reads_source, expected
):
    set_tags(monkeypatch, tags, reads_source=reads_source)
    config = DecodingConfig(beam_size=7, mbr="chrf", sample=True)
    Workdir(place / "back").write_config(replace(Config(), decoding=config))
    given = ("--reverse=back", "--source_language=en", "--target_language=de")
    back = distill._reversed(options_of("--sources=in", "--beam_size=2", *given))
    assert (back.source_language, back.target_language) == expected
    assert back.config.decoding == DecodingConfig(beam_size=7)
    if tags:
        with pytest.raises(UserError, match=r"into --source_language.* en, de\. Pass"):
            distill._reversed(options_of("--sources=in", "--reverse=back"))


JOB = ("--sources=in", "--reverse=back", "--shards=3")


@pytest.mark.parametrize("kind", ["teacher", "reverse"])
@pytest.mark.parametrize("line", [0, 3, 5])
def test_a_killed_distillation_is_resumed_with_the_same_bytes(distilled, kind, line):
    distilled(*JOB)
    whole = contents("to")
    shutil.rmtree("to")
    with pytest.raises(Killed):
        distilled(*JOB, **{kind: Said(killed_at=line)})
    again = {kind: Said()}
    distilled(*JOB, **again)
    assert len(again[kind].calls) == 6 - line // 2 * 2  # in shards of two lines
    assert contents("to") == whole


def test_a_distillation_that_is_killed_as_it_writes_is_resumed(distilled, monkeypatch):
    distilled(*JOB)
    whole = contents("to")
    rename, left = Path.rename, []

    def renamed(path, to):
        left.pop()
        if not left:
            raise Killed
        return rename(path, to)

    for number in range(1, 5):  # sources, targets, pairs and what was left out
        shutil.rmtree("to")
        left[:] = range(number)
        monkeypatch.setattr(Path, "rename", renamed)
        with pytest.raises(Killed):
            distilled(*JOB)
        monkeypatch.setattr(Path, "rename", rename)
        distilled(*JOB)
        assert contents("to") == whole


def flipped(content, rng):
    place = rng.randrange(len(content))
    bit = 1 << rng.randrange(8)
    return content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]


def cut(content, rng):
    return content[: rng.randrange(len(content))]


def exchanged(content, rng):
    lines = content.splitlines(keepends=True)
    one, other = rng.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


@pytest.mark.parametrize("kind", [None, "teacher", "reverse"])
def test_a_corrupt_file_is_noticed_and_named(distilled, kind):
    """200 corruptions of files of a distillation that is complete, or was killed."""
    if kind:
        with pytest.raises(Killed):
            distilled(*JOB, **{kind: Said(killed_at=4)})
    else:
        distilled(*JOB)
    rng, options = random.Random(7), options_of(*JOB)
    good = {path: content for path, content in contents("to").items() if content}
    shards = [path for path in good if path.name in ("00000", "00000.sha256")]
    assert len(shards) == (2 if kind else 0)
    for _ in range(67):
        path = rng.choice(sorted(good))
        is_text = path.suffix in (".txt", ".tsv") or path.name.isdecimal()
        change = rng.choice([flipped, cut, exchanged][: 2 + is_text])
        (Path("to") / path).write_bytes(change(good[path], rng))
        if contents("to")[path] != good[path]:
            with pytest.raises(UserError, match=path.parts[0].partition(".shards")[0]):
                distilled(options=options)
        shutil.rmtree("to")
        for path, content in good.items():
            (Path("to") / path).parent.mkdir(parents=True, exist_ok=True)
            (Path("to") / path).write_bytes(content)
    distilled(*JOB)


def test_two_shards_that_are_exchanged_are_noticed(distilled):
    with pytest.raises(Killed):
        distilled(*JOB, teacher=Said(killed_at=4))
    folder = Path("to/translations.tsv.shards")
    for suffix in ("", ".sha256"):
        one, other = folder / f"00000{suffix}", folder / f"00001{suffix}"
        contents = one.read_bytes(), other.read_bytes()
        other.write_bytes(contents[0])
        one.write_bytes(contents[1])
    with pytest.raises(DataError, match="00000 is corrupt"):
        distilled(*JOB)


def test_sources_are_read_without_joins(distilled, place):
    set_data(place, subword_joiner="@@")
    (place / "in").write_text("a dog bar@@ ks\na dog barks\nre@@\n")
    distilled("--sources=in")
    assert lines_of("to/sources.txt") == ["a dog barks", "re"]


def test_the_training_text_is_translated_but_for_back_translations(distilled, place):
    (place / "a.en").write_text("held out\nA dog.\nA cat.\n")
    (place / "a.de").write_text("fern\nEin Hund.\nEine Katze.\n")
    both = "text:a.en,a.de#en-de,de-en++tsv:a.en#1,2#<BT>#en-de"
    set_data(place, train=both, dev_pairs=1)
    with pytest.raises(UserError, match="Pass --target_language, one of them"):
        distilled()
    distilled("--target_language=en")
    assert lines_of("to/sources.txt") == ["Ein Hund.", "Eine Katze."]


def test_other_settings_are_refused_and_change_nothing(distilled):
    distilled(*JOB)
    whole = contents("to")
    for argv, message in [
        (("--drop_worst=50%",), "pairs.tsv.gz is not what this command writes"),
        (("--beam_size=3",), "beam_size was 4 and is 3.*change --to"),
        (("--target_language=de",), "--target_language was None and is 'de'"),
        (("--sources=in,to/sources.txt", "--reverse=no"), "--reverse=no"),
    ]:
        with pytest.raises(UserError, match=message):
            distilled(*JOB, *argv)
    assert contents("to") == whole
    Path("to/back.tsv.shards.json").unlink()
    with pytest.raises(DataError, match=r"is complete, but .*json, which"):
        distilled(*JOB)
    Path("in").write_text("\n\n")
    with pytest.raises(DataError, match="no line to translate"):
        distilled("--sources=in")


def test_an_export_searches_as_it_can_and_its_content_is_known(distilled, place):
    with pytest.raises(UserError, match="--export=x has no model"):
        distilled(*JOB, "--export=x")
    # Several processes compare their settings before.
    assert settings_of(options_of("--export=x"))["--export"] == "x"
    (place / "x").mkdir()
    (place / "x/model.bin").write_bytes(b"1")
    for argv, named in [
        (("--sample", "--mbr=chrf"), "without config.decoding.sample, config.decoding"),
        (("--ensemble=back",), "without --ensemble"),
    ]:
        with pytest.raises(UserError, match=f"a beam over one model, {named}"):
            distilled(*JOB, "--export=x", *argv)
    distilled("--sources=in", "--export=x")
    assert json.loads(Path("to/distill.json").read_text())["teacher"] == "x"
    whole = contents("to")
    with pytest.raises(UserError, match="--export was 'x' and is 'missing'"):
        distilled("--sources=in")
    (place / "x/model.bin").write_bytes(b"2")
    with pytest.raises(UserError, match="the content of --export was"):
        distilled("--sources=in", "--export=x")
    assert contents("to") == whole
