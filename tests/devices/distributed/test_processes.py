import subprocess
import sys
from types import ModuleType

import pytest

from t2t_jax.devices.distributed.processes import (
    SINGLE_PROCESS,
    current_processes,
    initialize,
)
from t2t_jax.errors import UserError


def test_without_settings_initialize_returns_a_single_process():
    assert initialize(environ={"JAX_PLATFORMS": "cpu"}) is SINGLE_PROCESS
    with pytest.raises(UserError, match="belong together"):
        initialize(num_processes=2, environ={})
    assert current_processes() == SINGLE_PROCESS


def test_while_another_thread_imports_jax_this_process_is_alone(monkeypatch):
    # An import here would leave that thread with half a module.
    for name in ("jax._src", "jax._src.distributed"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    assert current_processes() == SINGLE_PROCESS


def test_a_single_process_does_not_import_jax():
    program = (
        "import sys\n"
        "from t2t_jax.devices.distributed.processes import initialize\n"
        "initialize(environ={})\n"
        "sys.exit('jax' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
