"""`--mode=doctor`: one line for each check, and the exit code."""

import json

import pytest

from t2t_jax.main import main
from t2t_jax.report import doctor as checks
from t2t_jax.report.doctor import Check


def replace_checks(monkeypatch, found, *names):
    """Finds so much by the first of some checks, and nothing by the others."""
    for name, some in zip(names, [found, *[()] * len(names)], strict=False):
        monkeypatch.setattr(checks, f"check_{name}", lambda *_, some=some, **__: some)


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        ("ok", 0, "0 errors and 0 warnings"),
        ("warning", 0, "0 errors and 1 warning,"),
        ("error", 69, "1 error and 0 warnings"),
    ],
)
def test_only_an_error_changes_the_exit_code(
    tmp_path, monkeypatch, capsys, status, code, words
):
    found = [Check("variables", "X", status, "X=1", "Unset it.")]
    names = ("variables", "devices", "machine", "storage", "versions")
    replace_checks(monkeypatch, found, *names)
    assert main(["doctor", f"--workdir={tmp_path}"]) == code
    out = capsys.readouterr().out
    assert words in out.splitlines()[-1]
    assert f"  {status:<8}X=1\n          Unset it.\n" in out


def test_the_json_has_a_stable_shape(tmp_path, monkeypatch, capsys):
    jax = [Check("devices", "jax", "ok", "JAX computes")]
    replace_checks(monkeypatch, jax, "devices", "variables")
    code = main(["doctor", f"--workdir={tmp_path / 'new'}", "--format=json"])
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"t2t_jax", "status", "checks", "seconds"}
    assert code == (69 if found["status"] == "error" else 0)
    for check in found["checks"]:
        assert check.keys() == set(Check.__dataclass_fields__)
        assert check["status"] in ("ok", "warning", "error")
    names = [(check["group"], check["name"]) for check in found["checks"]]
    assert len(set(names)) == len(names)
