"""What the doctor says of a broken installation, and of this one."""

import json
import sys

import pytest

from t2t_jax.report import doctor
from t2t_jax.report.doctor import check_devices

FOUND = {
    **{"jax": "0.10.2", "platform": "gpu", "compute_dtype": "bfloat16"},
    **{"attention": "plain", "import_seconds": 1.0, "device_seconds": 2.0},
    "devices": [{"id": 0, "kind": "H100", "memory_bytes": 64 * 10**9}],
}


def by_name(found):
    return {check.name: check for check in found}


def probe(program, *, timeout=60.0, environ=None):
    command = [sys.executable, "-c", program]
    return [*check_devices(command=command, timeout=timeout, environ=environ or {})]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("raise ImportError('libx.so: missing')", "libx.so: missing"),
        ("import os; os.kill(os.getpid(), 4)", "this processor does not have"),
        ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("raise SystemExit(3)", "code 3"),
        ("print('[]')", "code 0"),
    ],
)
def test_a_broken_jax_is_one_line_and_names_what_forces_a_platform(program, words):
    (check,) = probe(program, environ={"JAX_PLATFORMS": "cuda"})
    assert (check.status, check.name) == ("error", "jax")
    assert words in check.message
    assert "\n" not in check.message
    assert "JAX_PLATFORMS=cuda" in check.advice


def test_a_driver_that_hangs_is_an_error_after_the_timeout():
    (check,) = probe("import time; time.sleep(600)", timeout=0.2)
    assert check.status == "error"


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_devices_are_described_and_an_idle_gpu_warns(monkeypatch, tmp_path, platform):
    monkeypatch.setattr(doctor, "_ACCELERATORS", {str(tmp_path): "cuda"})
    printed = json.dumps({**FOUND, "platform": platform})
    found = by_name(probe(f"print('noise')\nprint({printed!r})"))
    for words in ("JAX 0.10.2", f"on {platform}", "bfloat16", "plain", "3.0 s"):
        assert words in found["jax"].message
    assert found["device 0"].message == "H100, 64.0 GB of memory for JAX"
    assert ("unused cuda" in found) == (platform == "cpu")


def test_a_package_of_an_extra_that_is_missing_is_named_with_it(monkeypatch):
    names = ("uvicorn", "ctranslate2")
    monkeypatch.setattr(doctor, "_version", lambda name: "9" * (name not in names))
    (check,) = (one for one in doctor.check_versions() if one.name == "optional")
    assert check.status == "ok"
    assert "ctranslate2 (export), uvicorn (serve)." in check.advice


@pytest.mark.parametrize(
    ("free", "status"), [(3 << 30, "ok"), (1 << 30, "warning"), (1 << 20, "error")]
)
def test_a_full_disk_is_said(monkeypatch, tmp_path, free, status):
    usage = doctor.shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage)
    (check, *_) = doctor.check_storage(tmp_path, is_given=True)
    assert check.status == status


def test_variables_that_matter_are_shown_and_harmful_ones_warned_of():
    harmful = {
        "JAX_DISABLE_JIT": "True",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "CUDA_VISIBLE_DEVICES": "-1",
    }
    more = {"JAX_PLATFORMS": "cpu", "HOME": "/root", "JAX_LOG_COMPILES": "x" * 999}
    found = by_name(doctor.check_variables({**harmful, **more}))
    warned = {name for name, check in found.items() if check.status == "warning"}
    assert warned == {*harmful}
    assert "HOME" not in found
    assert len(found["JAX_LOG_COMPILES"].message) < 250
