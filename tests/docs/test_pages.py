"""Every command and snippet of the site is run, or says why it is not.

Seen to fail: a wrong flag in a page, a file that no earlier command wrote, and a
replacement whose text is gone from its block.
"""

import argparse
import gzip
import json
import re
import shutil

import pytest

from t2t_jax.data.corpora.open import open_corpus
from tests.docs.commands import LANGUAGES, blocks, run_python, run_shell
from tests.exchange import (
    fairseq_state,
    hf_directory,
    m2m_100_directory,
    marian_save,
    t2t_state,
)
from tests.exchange.torch_save import Tensor, save_zip
from tests.integration import tiny
from tests.integration.tiny import ROOT, TINY
from tests.made_once import made_once

# Tutorials have a test of their own, which compares what they print as well.
PAGES = {
    str(path.relative_to(ROOT / "docs")): blocks(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if path.relative_to(ROOT / "docs").parts[0] not in ("tutorials", "_build")
}
HERE = {
    page: [block for block in found if not block.skipped and not block.elsewhere]
    for page, found in PAGES.items()
}


@pytest.fixture(scope="session")
def trained(shared_directory):
    """A directory with two runs, and the text that the pages name."""
    return made_once(shared_directory / "reader", _prepare)


def _prepare(folder):
    keys = {"checkpoint.every_steps": 2, "data.cache_dir": str(folder / "cache")}
    keys |= {"steps": 6, "evaluation.every_steps": 6}
    tiny.succeed(*tiny.arguments(folder / "runs/phrasebook", **keys))
    shutil.copytree(folder / "runs/phrasebook", folder / "runs/mine")
    values = {**TINY, **keys, "steps": 2, "evaluation.every_steps": 0}
    (folder / "tiny.json").write_text(json.dumps(values), encoding="utf-8")
    pairs = list(open_corpus("phrasebook:train:64"))
    # Short ones: each length of outputs is a program to compile.
    short = sorted(open_corpus("phrasebook:train:600"), key=lambda p: len("".join(p)))
    files = {"train": pairs, "mine": short[:64], "test": short[:3]}
    for side, name in enumerate(("en", "de")):
        text = {k: "".join(f"{p[side]}\n" for p in v) for k, v in files.items()}
        for stem in files:
            (folder / f"{stem}.{name}").write_text(text[stem], encoding="utf-8")
        _write_multi30k(folder / "multi30k/data/task1/tok", name, text["train"].lower())
    shutil.copy(folder / "test.en", folder / "in.txt")
    (folder / "big.txt.gz").write_bytes(gzip.compress((folder / "in.txt").read_bytes()))
    config = hf_directory.configuration(encoder_layers=1)
    hf_directory.write_directory(folder / "opus-mt-en-de", config)
    m2m_100_directory.write_directory(folder / "nllb", "NLLB-200", encoder_layers=1)
    _write_toolkits(folder)
    (folder / "marian").mkdir()
    marian_save.save(folder / "marian/model.npz", **{"enc-depth": 1})
    vocabulary = marian_save.sentencepiece_model()
    (folder / "marian/vocab.spm").write_bytes(vocabulary)


def _write_toolkits(folder):
    # Small models of fairseq and tensor2tensor.
    layers = {"encoder_layers": 1, "decoder_layers": 1}
    args = fairseq_state.arguments(share_all_embeddings=True, **layers)
    state = fairseq_state.State(args, sizes=(8, 8)).tensors
    (folder / "fairseq").mkdir()
    save_zip(
        folder / "fairseq/checkpoint_best.pt",
        {
            "args": argparse.Namespace(**args),
            "model": {name: Tensor(array) for name, array in state.items()},
        },
    )
    for side in ("en", "de"):
        (folder / f"fairseq/dict.{side}.txt").write_text("the 9\nlo@@ 8\nw 7\na 6\n")
    (folder / "t2t").mkdir()
    hparams = t2t_state.hparams_of(num_hidden_layers=1, num_decoder_layers=0)
    t2t_state.write(folder / "t2t", t2t_state.State(hparams).tensors, hparams)


def _write_multi30k(folder, side, text):
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "val", "test_2016_flickr"):
        (folder / f"{part}.lc.norm.tok.{side}").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in PAGES if HERE[page]])
def test_the_commands_of_a_page_run_in_order(page, trained, tmp_path):
    folder = tmp_path / "reader"
    shutil.copytree(trained, folder, symlinks=True)
    program = ""
    for block in HERE[page]:
        if block.language == "python":
            program += f"{block.changed()}\n"
        else:
            run_shell(block.changed(), folder)
    if program:
        printed = run_python(program, folder)
        for shown in re.findall(r"^print\(.*\)  # (\(.*\))$", program, re.MULTILINE):
            assert shown in printed


def test_what_is_not_run_says_why():
    skipped = [b.skipped for found in PAGES.values() for b in found if b.skipped]
    assert 0 < len(skipped) < 40
    assert all(len(reason.split()) > 2 for reason in skipped)
    tests = re.findall(r"\btests/[\w/.]+", " ".join(skipped))
    assert [path for path in tests if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    "path", ["README.md", "CONTRIBUTING.md", "docs/tutorials/index.md"]
)
def test_each_block_of_another_page_names_its_test_or_says_why_not(path):
    found = blocks((ROOT / path).read_text(encoding="utf-8"))
    assert found
    for block in found:
        assert block.skipped or block.elsewhere, block.code
        if block.elsewhere:
            assert path.split("/")[-1] in (ROOT / block.elsewhere).read_text("utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_in_blocks_that_tests_read(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    inside = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    command = r"(?:python -m|bash|pip install|t2t-jax|curl) "
    assert re.findall(rf"^    {command}.*", inside, re.MULTILINE) == []
    others = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    unread = [code for language, code in others if language not in (*LANGUAGES, "text")]
    assert [c for c in unread if re.search(rf"^\$? ?{command}", c, re.MULTILINE)] == []
