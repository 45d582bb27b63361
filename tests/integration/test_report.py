import json
import shutil

import pytest

from tests.integration import tiny
from tests.report.test_page import read


@pytest.fixture(scope="module")
def trained(tiny_run, tmp_path_factory):
    return shutil.copytree(tiny_run, tmp_path_factory.mktemp("report") / "run")


def data_of(path):
    return json.loads(read(path.read_text(encoding="utf-8")).scripts[0])


def test_the_mode_adds_attention_and_intervals(trained, tmp_path):
    to = tmp_path / "page.html"
    done = tiny.succeed("--mode=report", f"--workdir={trained}", f"--to={to}")
    assert done.stdout.decode() == f"{to}\n"
    assert "bootstrap samples" in to.read_text(encoding="utf-8")
    first = data_of(to)["attention"][0]
    for kind, queries, keys in (
        ("encoder", "source", "source"),
        ("decoder", "target", "target"),
        ("cross", "target", "source"),
    ):
        shape = [1, 2, len(first[queries]), len(first[keys])]
        assert first["maps"][kind]["shape"] == shape
    assert first["target"][0] == "<s>"
    assert first["source"][-1] == "</s>"
