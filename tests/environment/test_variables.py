import pytest

from t2t_jax.environment.variables import check_variables


def checks(**environ):
    return {check.name: check for check in check_variables(environ)}


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("JAX_DISABLE_JIT", "True", "warning"),
        ("JAX_DISABLE_JIT", "0", "ok"),
        ("JAX_ENABLE_COMPILATION_CACHE", "false", "warning"),
        ("JAX_ENABLE_COMPILATION_CACHE", "true", "ok"),
        ("CUDA_VISIBLE_DEVICES", "", "warning"),
        ("CUDA_VISIBLE_DEVICES", "0,1", "ok"),
        ("XLA_FLAGS", "--xla_force_host_platform_device_count=8", "warning"),
        ("XLA_FLAGS", "--a=b --xla_cpu_multi_thread_eigen=false", "warning"),
        ("XLA_FLAGS", "--xla_force_host_platform_device_count=1", "ok"),
        ("T2T_JAX_FAULT", "kill@3", "error"),
        ("LD_PRELOAD", "libx.so", "warning"),
        ("TFDS_DATA_DIR", "/data", "ok"),
    ],
)
def test_values_that_hurt_are_named(name, value, status):
    check = checks(**{name: value})[name]
    assert check.status == status
    assert bool(check.advice) == (status != "ok")


def test_what_does_not_matter_is_not_shown():
    found = checks(HOME="/root", HF_TOKEN="secret", AWS_SECRET_ACCESS_KEY="secret")
    assert found.keys() == {"none", "encoding"}


@pytest.mark.parametrize("name", ["https_proxy", "HTTP_PROXY"])
def test_the_password_of_a_proxy_is_not_shown(name):
    check = checks(**{name: "http://user:pass@proxy:3128"})[name]
    assert "pass" not in str(check.to_dict())
    assert "proxy:3128" in check.message


def test_a_long_value_is_cut():
    assert len(checks(LD_LIBRARY_PATH="x" * 10_000)["LD_LIBRARY_PATH"].message) < 300
