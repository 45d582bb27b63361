import ast
from pathlib import Path

import pytest
from ml_collections import ConfigDict

from t2t_jax.config import Config, parse
from tests.integration.tiny import ROOT

FILES = sorted(
    path for path in (ROOT / "configs").glob("*.py") if path.name != "__init__.py"
)


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def path(request) -> Path:
    return request.param


def _load(path: Path) -> ConfigDict:
    scope: dict = {}
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), scope)
    return scope["get_config"]()


def test_every_config_parses(path):
    config = parse(_load(path).to_dict())
    assert isinstance(config, Config)
    assert config.data.train
    assert config.data.dev


def test_every_config_is_a_page_of_the_notebook(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 60
    header = ast.get_docstring(ast.parse(text))
    assert "Score" in header
    assert "python -m t2t_jax.main" in header


def test_configs_have_neither_conditions_nor_each_other(path):
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    assert not any(isinstance(node, ast.If | ast.IfExp) for node in nodes)
    imported = [n.module for n in nodes if isinstance(n, ast.ImportFrom)]
    assert imported == ["t2t_jax.config"]


def test_the_default_experiment_is_there():
    assert "phrasebook" in [path.stem for path in FILES]
