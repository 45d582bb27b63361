import sys
from types import ModuleType

from t2t_jax.devices.distributed.processes import SINGLE_PROCESS, current_processes


def test_while_another_thread_imports_jax_this_process_is_alone(monkeypatch):
    # An import here would leave that thread with half a module.
    for name in ("jax._src", "jax._src.distributed"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    assert current_processes() == SINGLE_PROCESS
