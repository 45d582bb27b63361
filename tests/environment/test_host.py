import errno

import pytest

from t2t_jax.environment import host
from t2t_jax.environment.check import worst


def by_name(checks):
    return {check.name: check for check in checks}


@pytest.mark.parametrize(
    ("version", "status"), [("", "error"), ("0.9.9", "error"), ("0.10.0rc1", "ok")]
)
def test_a_required_package_that_is_missing_or_old_is_an_error(
    monkeypatch, version, status
):
    lines = ["jax>=0.10", 'torch>=2; extra == "parity"', "rich"]
    monkeypatch.setattr(host.metadata, "requires", lambda name: lines)
    monkeypatch.setattr(host, "_version", lambda name: version)
    found = by_name(host.check_versions())
    assert "torch" not in found
    assert (found["jax"].status, bool(found["jax"].advice)) == (
        *(status, status != "ok"),
    )


def test_every_required_package_of_this_installation_is_found():
    found = by_name(host.check_versions())
    assert {"jax", "flax", "numpy", "sentencepiece"} <= found.keys()
    assert worst(found.values()) == "ok"


def test_the_machine_has_processors_and_memory():
    found = by_name(host.check_machine())
    assert found["processors"].details["usable"] >= 1
    assert found["memory"].details["bytes"] > 1e9


def test_the_disk_of_a_workdir_that_is_not_there_is_checked(tmp_path):
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    new = tmp_path / "a/b"
    found = by_name(host.check_storage(new, is_given=True, environ=environ))
    assert found["workdir"].status == "ok"
    assert found["caches"].details["path"] == str(tmp_path / "cache/t2t_jax")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("is_given", [True, False])
def test_a_disk_without_locks_is_an_error_where_it_was_chosen(
    monkeypatch, tmp_path, is_given
):
    def no_locks(path):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(host, "locked", no_locks)
    found = by_name(host.check_storage(tmp_path, is_given=is_given))
    assert found["workdir"].status == ("error" if is_given else "warning")
    assert "No locks available" in found["workdir"].message


@pytest.mark.parametrize(
    ("free", "status"), [(3 << 30, "ok"), (1 << 30, "warning"), (1 << 20, "error")]
)
def test_a_full_disk_is_said(monkeypatch, tmp_path, free, status):
    usage = host.shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(host.shutil, "disk_usage", lambda path: usage)
    (check, *_) = host.check_storage(tmp_path, is_given=True)
    assert check.status == status


def test_variables_that_matter_are_shown_and_harmful_ones_warned_of():
    environ = {
        "JAX_DISABLE_JIT": "True",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "CUDA_VISIBLE_DEVICES": "-1",
        "JAX_PLATFORMS": "cpu",
        "HOME": "/root",
        "JAX_LOG_COMPILES": "x" * 999,
    }
    found = by_name(host.check_variables(environ))
    harmful = {name for name, check in found.items() if check.status == "warning"}
    assert harmful == {"JAX_DISABLE_JIT", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES"}
    assert "HOME" not in found
    assert len(found["JAX_LOG_COMPILES"].message) < 250
