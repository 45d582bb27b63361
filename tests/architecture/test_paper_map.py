"""Every name in the paper map of WORKSPACE.md exists."""

import re
from importlib import import_module

import pytest

from tests.integration.tiny import ROOT

_TEXT = (ROOT / "WORKSPACE.md").read_text(encoding="utf-8")
_MAP = _TEXT[_TEXT.index("## Paper -> program") : _TEXT.index("## Departures")]
SYMBOLS = re.findall(r"`(t2t_jax\.[\w.]+)`", _MAP)
TESTS = re.findall(r"`(tests/[\w/.]+)`", _MAP)
KEYS = re.findall(r"`config\.([\w.]+)`", _MAP)


def test_the_map_covers_the_paper():
    sections = set(re.findall(r"§[\d.]+", _MAP))
    assert sections >= {"§3.1", "§3.2.1", "§3.2.2", "§3.2.3", "§3.3", "§3.4", "§3.5"}
    assert sections >= {"§5.1", "§5.2", "§5.3", "§5.4", "§6.1"}
    assert len(SYMBOLS) > 20


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_every_symbol_imports(symbol):
    module, name = symbol.rsplit(".", 1)
    assert hasattr(import_module(module), name)


@pytest.mark.parametrize("path", TESTS)
def test_every_proof_is_there(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_there(key):
    from t2t_jax.config import default

    assert key in default().to_dict() or key in [
        f"{section}.{name}"
        for section, values in default().to_dict().items()
        if isinstance(values, dict)
        for name in values
    ]
