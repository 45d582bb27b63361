"""`--mode=doctor`: one line for each check, and the exit code."""

import json

import pytest

from t2t_jax import main
from t2t_jax.report import doctor as checks
from t2t_jax.report.doctor import Check

ADVICE = "Unset it."


@pytest.fixture
def doctor(monkeypatch, capsys):
    """Runs the mode with given checks of variables, and without JAX."""

    def run(*argv, variables=()):
        ok = [Check("devices", "jax", "ok", "JAX computes")]
        monkeypatch.setattr(checks, "check_devices", lambda: ok)
        monkeypatch.setattr(checks, "check_variables", lambda: list(variables))
        code = main.main(["doctor", *argv])
        return code, capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        ("ok", 0, "0 errors and 0 warnings"),
        ("warning", 0, "0 errors and 1 warning,"),
        ("error", 69, "1 error and 0 warnings"),
    ],
)
def test_only_an_error_changes_the_exit_code(
    doctor, tmp_path, monkeypatch, status, code, words
):
    for name in ("machine", "storage", "versions"):
        monkeypatch.setattr(checks, f"check_{name}", lambda *_, **__: iter(()))
    variables = [Check("variables", "X", status, "X=1", ADVICE)]
    found, out = doctor(f"--workdir={tmp_path}", variables=variables)
    assert found == code
    assert words in out.splitlines()[-1]
    assert f"  {status:<8}X=1\n          {ADVICE}\n" in out


def test_the_json_has_a_stable_shape(doctor, tmp_path):
    code, out = doctor(f"--workdir={tmp_path / 'new'}", "--format=json")
    found = json.loads(out)
    assert found.keys() == {"t2t_jax", "status", "checks", "seconds"}
    assert code == (69 if found["status"] == "error" else 0)
    for check in found["checks"]:
        assert check.keys() == set(Check.__dataclass_fields__)
        assert check["status"] in ("ok", "warning", "error")
    names = [(check["group"], check["name"]) for check in found["checks"]]
    assert len(set(names)) == len(names)
