import json
import sys

import pytest

from t2t_jax.environment import devices
from t2t_jax.environment.devices import check_devices

FOUND = {
    "jax": "0.10.2",
    "platform": "gpu",
    "devices": [{"id": 0, "kind": "H100", "memory_bytes": 64 * 10**9}],
    "compute_dtype": "bfloat16",
    "attention": "plain",
    "import_seconds": 1.0,
    "device_seconds": 2.0,
}


def probe(program, *, timeout=60.0, environ=None):
    command = [sys.executable, "-c", program]
    return [*check_devices(command=command, timeout=timeout, environ=environ or {})]


@pytest.mark.parametrize(
    ("program", "words", "advice"),
    [
        ("raise ImportError('libx.so: missing')", "libx.so: missing", "reinstall"),
        (
            "import os; os.kill(os.getpid(), 4)",
            "this processor does not have",
            "driver",
        ),
        ("import os; os.kill(os.getpid(), 11)", "ended by SIGSEGV", "driver"),
        ("raise SystemExit(3)", "it ended with code 3", "driver"),
        ("print('not JSON')", "it ended with code 0", "driver"),
        ("print('[]')", "it ended with code 0", "driver"),
    ],
)
def test_a_broken_jax_is_one_line(program, words, advice):
    (check,) = probe(program)
    assert (check.status, check.name) == ("error", "jax")
    assert words in check.message
    assert advice in check.advice
    assert "\n" not in check.message


def test_a_platform_that_is_forced_is_named():
    (check,) = probe("raise AssertionError", environ={"JAX_PLATFORMS": "cuda"})
    assert "JAX_PLATFORMS=cuda" in check.advice


def test_a_driver_that_hangs_is_an_error_after_the_timeout():
    (check,) = probe("import time; time.sleep(600)", timeout=0.2)
    assert check.status == "error"
    assert "has not started" in check.message


def test_devices_have_their_memory_and_their_precision():
    printed = f"import warnings\nprint('noise')\nprint('''{json.dumps(FOUND)}''')"
    found = {check.name: check for check in probe(printed)}
    for words in ("JAX 0.10.2", "on gpu", "bfloat16", "plain", "3.0 s"):
        assert words in found["jax"].message
    assert found["device 0"].message == "H100, 64.0 GB of memory for JAX"
    assert all(check.status == "ok" for check in found.values())


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_a_gpu_that_is_not_used_is_a_warning(monkeypatch, tmp_path, platform):
    monkeypatch.setattr(devices, "_ACCELERATORS", {str(tmp_path): "cuda"})
    printed = json.dumps({**FOUND, "platform": platform})
    found = {check.name: check for check in probe(f"print({printed!r})")}
    assert ("unused cuda" in found) == (platform == "cpu")
