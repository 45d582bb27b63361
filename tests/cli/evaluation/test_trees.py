"""What `--mode=evaluate --protocol=parsing` refuses."""

import pytest

from t2t_jax.config import Config, parse
from t2t_jax.main import main
from t2t_jax.run.workdir import Workdir
from tests.data.trees.sample import SAMPLE


@pytest.fixture
def refused(tmp_path, capsys):
    def command(*argv, train=f"trees:{SAMPLE}", reference=SAMPLE):
        run = Workdir(tmp_path / "run")
        run.create()
        run.write_config(parse({"data": {"train": train}}) if train else Config())
        code = main(
            [
                *("--mode=evaluate", f"--workdir={run.path}"),
                *(f"--reference={reference}", "--protocol=parsing", *argv),
            ]
        )
        return code, capsys.readouterr().err

    return command


def test_a_model_of_text_is_no_parser(refused):
    code, errors = refused(train="phrasebook:train:300")
    assert code == 78
    assert "--protocol=parsing requires a model of trees" in errors
    assert errors.count("error:") == 1


def test_a_reference_of_text_is_no_treebank(refused, tmp_path):
    text = tmp_path / "text.de"
    text.write_text("Ein Hund bellt.\n")
    code, errors = refused(reference=text)
    assert code == 65
    assert "the tree that begins here is not in Penn brackets" in errors


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["The kettle whistles ."], "have 1 lines and 40 trees"),
        (["a b"] * 40, "differ in sentence 1: 'a b' and 'The kettle whistles .'"),
    ],
)
def test_sentences_are_those_of_the_trees(refused, tmp_path, lines, message):
    source = tmp_path / "words.txt"
    source.write_text("".join(f"{line}\n" for line in lines))
    code, errors = refused(f"--source={source}")
    assert code == 65
    assert message in errors


def test_parameters_are_a_file_of_evalb(refused, tmp_path):
    rules = tmp_path / "rules.prm"
    rules.write_text("DELETE_LABELS TOP\n")
    code, errors = refused(f"--parameters={rules}")
    assert code == 65
    assert "unknown parameter 'DELETE_LABELS'" in errors


def test_flags_of_text_are_refused(refused, tmp_path):
    code, errors = refused(f"--baseline={SAMPLE}")
    assert code == 64
    assert "--baseline has no effect with --protocol=parsing" in errors
    assert main(["--mode=evaluate", "--workdir=x", "--parameters=a.prm"]) == 64


def test_other_protocols_require_a_source(tmp_path, capsys):
    argv = ["--mode=evaluate", f"--workdir={tmp_path}", "--reference=x"]
    assert main([*argv, "--protocol=vaswani2017"]) == 64
    assert "requires --source" in capsys.readouterr().err
