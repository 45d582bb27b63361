"""What README.md shows is run as printed, but for smaller sizes."""

import re

import pytest

from t2t_jax.cli.flags.modes import MODES
from tests.docs.commands import Block, run_python, run_shell
from tests.exchange import marian_save
from tests.integration.tiny import ROOT

PROJECT = "https://github.com/t2t-jax/t2t_jax"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.usefixtures("compiled_as_for_users")
def test_the_python_script_runs_as_printed():
    script, *_ = _blocks("python")
    assert len(script.strip().splitlines()) <= 15
    printed = run_python(script, ROOT)
    # The comment behind print is what it prints.
    assert printed.strip() == re.search(r"print\(.*#\s*(.*)", script)[1]


LINKS = re.findall(r"\]\(([^)]+)\)", README)


@pytest.mark.parametrize("target", LINKS)
def test_a_link_works_on_a_package_index_and_leads_somewhere(target):
    # README.md is the package's long description, where relative links are broken.
    assert target.startswith("https://")
    if not target.startswith(PROJECT):
        return
    inside, _, anchor = target.removeprefix(PROJECT).partition("#")
    path = ROOT / re.sub(r"^/(blob|tree)/main/", "", inside or "README.md")
    assert path.exists()
    assert inside.startswith("/tree") == (bool(inside) and path.is_dir())
    # Pages that stand for a file outside docs/ have nothing but a link to it.
    assert path.is_dir() or "\nThis page is [" not in path.read_text("utf-8")
    if anchor:
        headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
        assert anchor in [anchor_of(heading) for heading in headings]


def anchor_of(heading: str) -> str:
    """Returns the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_mode_it_names_exists():
    for mode in re.findall(r"t2t-jax (\w+)", README):
        assert mode in MODES


def test_it_is_short():
    assert len(README.splitlines()) < 130


def test_the_commands_without_files_run_as_printed(tmp_path, tiny_run):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "phrasebook").symlink_to(tiny_run)
    (block,) = (block for block in _blocks("sh") if "--devices=8" in block)
    # As in docs/how_to/paper_experiments.md: six layers take long to compile.
    one_layer = block.replace("--devices=8", "--devices=8 --config.model.num_layers=1")
    assert one_layer != block
    assert run_shell(one_layer, tmp_path)


def test_the_fine_tuning_of_an_imported_model_runs_as_printed(tmp_path):
    pytest.importorskip("yaml")
    (tmp_path / "marian").mkdir()
    marian_save.save(tmp_path / "marian" / "model.npz", **{"enc-depth": 1})
    (tmp_path / "marian" / "vocab.spm").write_bytes(marian_save.sentencepiece_model())
    block = next(b for b in _blocks("sh") if "--mode=import" in b)
    for name, times in (("mine.en", 8), ("mine.de", 8), ("in.txt", 2)):
        (tmp_path / name).write_text("the new lid is low\nlower wide\n" * times)
    small = f"=fine_tune FINE_TUNED --config.data.cache_dir={tmp_path}/cache"
    commands = Block("sh", block, [f"=fine_tune => {small}"]).changed()
    printed = run_shell(commands, tmp_path)
    assert "Beginning with the parameters of step 0 in models/base" in printed
    assert len((tmp_path / "out.txt").read_text().splitlines()) == 4


def test_what_changes_for_nllb_is_what_its_own_page_runs():
    page = (ROOT / "docs/how_to/fine_tune_nllb_or_m2m.md").read_text("utf-8")
    languages = "--source_language=eng_Latn --target_language=deu_Latn"
    for change in ("text:mine.en,mine.de#eng_Latn-deu_Latn", languages):
        assert change in README
        assert change in page
