"""What `--mode=evaluate --protocol=parsing` refuses."""

from pathlib import Path

import pytest

from t2t_jax.config import parse
from t2t_jax.main import main
from t2t_jax.run.workdir import Workdir
from tests.data.trees.sample import SAMPLE


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (("--reference=text",), 65, "the tree that begins here is not in Penn"),
        (("--source=text",), 65, "have 1 lines and 40 trees"),
        (("--source=other",), 65, "sentence 1: 'a b' and 'The kettle whistles .'"),
        (("--parameters=rules",), 65, "unknown parameter 'DELETE_LABELS'"),
        (
            ("--config.data.train=phrasebook:train:300",),
            78,
            "--protocol=parsing requires a model of trees",
        ),
    ],
)
def test_a_mistake_is_named(empty_directory, capsys, argv, code, message):
    run = Workdir(Path("run"))
    run.create()
    run.write_config(parse({"data": {"train": f"trees:{SAMPLE}"}}))
    Path("text").write_text("Ein Hund bellt.\n")
    Path("other").write_text("a b\n" * 40)
    Path("rules").write_text("DELETE_LABELS TOP\n")
    parsing = ("--mode=evaluate", "--protocol=parsing", f"--reference={SAMPLE}")
    assert main([*parsing, "--workdir=run", *argv]) == code
    assert message in capsys.readouterr().err
