import pytest

from t2t_jax.cli.modes.describe import check_mesh
from t2t_jax.errors import ConfigError
from t2t_jax.sharding.config import MeshConfig


@pytest.mark.parametrize(
    ("config", "devices"),
    [
        (MeshConfig(), 7),
        (MeshConfig(fsdp=2, tensor=3), 12),
        (MeshConfig(data=5, fsdp=2, tensor=3), 30),
        (MeshConfig(data=5, fsdp=2, tensor=3), 0),
        (MeshConfig(fsdp=2), 0),
    ],
)
def test_devices_that_make_the_mesh_are_described(config, devices):
    check_mesh(config, devices=devices)


@pytest.mark.parametrize(
    ("config", "devices", "message"),
    [
        (
            MeshConfig(data=5, fsdp=2),
            20,
            r"^--devices=20 does not fit mesh data=5 x fsdp=2 x tensor=1, which needs "
            r"10\. .* change config\.mesh\.$",
        ),
        (MeshConfig(data=2, fsdp=-1, tensor=3), 4, "which needs a multiple of 6\\."),
    ],
)
def test_devices_that_contradict_the_mesh_are_refused(config, devices, message):
    with pytest.raises(ConfigError, match=message):
        check_mesh(config, devices=devices)
