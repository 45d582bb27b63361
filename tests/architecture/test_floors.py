import ast
import sys
from pathlib import Path

import pytest

import t2t_jax
from tests.architecture import test_safety
from tests.architecture.test_safety import PACKAGE, imports_of, tree_of
from tests.docs.commands import run_python

# Imports only point to lower floors; within one folder they are free.
ORDER = (
    ("types", "errors", "version", "configs"),
    ("files", "jax_internals", "quantities"),
    ("functional", "devices"),
    ("data", "model"),
    ("decoding",),
    ("checkpointing", "training"),
    ("evaluation",),
    ("config",),
    ("config_files",),
    ("run",),
    ("report",),
    ("api", "exchange", "serving"),
    ("cli",),
    ("main",),
    ("__main__",),
)
FLOORS = {room: floor for floor, rooms in enumerate(ORDER) for room in rooms}

# The package's own __init__.py lazily names anything.
FILES = [path for path in test_safety.FILES if path != Path("__init__.py")]


def room_of(path):
    """Names the folder, or the file itself where it is in none."""
    return path.parts[0].removesuffix(".py")


def wrong_imports(path, tree):
    """Lists what a file of the package may not import."""
    here, wrong = room_of(path), []
    for name in imports_of(tree):
        if name.startswith("relative"):
            wrong.append(name)
        if not name.startswith("t2t_jax."):
            continue
        parts = name.split(".")
        there = parts[1]
        if there == here and len(path.parts) > 1:
            continue
        if path.name == "config.py" and len(path.parts) > 1:
            allowed = there == "errors"
        else:
            is_settings = here == "config" and parts[2:3] == ["config"]
            allowed = FLOORS[there] < FLOORS[here] or is_settings
        if not allowed:
            wrong.append(name)
    return wrong


def test_imports_only_point_to_lower_floors():
    assert {room_of(path) for path in FILES} <= set(FLOORS)
    found = {str(path): wrong_imports(path, tree_of(path)) for path in FILES}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("path", "source", "refused"),
    [
        ("data/a.py", "import t2t_jax.model.encoder", True),
        ("model/a.py", "from t2t_jax.data.files import lines", True),  # the same floor
        ("model/a.py", "from t2t_jax.functional.masks import causal", False),
        ("model/a.py", "from .encoder import Encoder", True),
        ("config.py", "from t2t_jax.training.config import TrainingConfig", False),
        ("config.py", "def f():\n  from t2t_jax.run.workdir import Workdir", True),
        ("training/config.py", "from t2t_jax.types import Batch", True),
    ],
)
def test_the_rule_itself_is_as_it_is_meant(path, source, refused):
    assert bool(wrong_imports(Path(path), ast.parse(source))) == refused


def third_party(path):
    names = {name.split(".")[0] for name in imports_of(tree_of(path))}
    return names - set(sys.stdlib_module_names) - {"t2t_jax"}


def test_a_folder_s_config_needs_the_standard_library_only():
    configs = [path for path in FILES if path.name == "config.py" and path.parts[1:]]
    assert configs
    assert {str(path): third_party(path) for path in configs if third_party(path)} == {}


def test_a_folder_s_init_is_empty():
    inits = [path for path in FILES if path.name == "__init__.py"]
    assert [str(path) for path in inits if (PACKAGE / path).read_text()] == []


def test_only_checkpointing_knows_orbax():
    knowing = [path for path in FILES if "orbax" in third_party(path)]
    assert knowing
    assert {path.parts[0] for path in knowing} == {"checkpointing"}


@pytest.mark.parametrize(
    ("room", "absent"),
    [
        ("types", ["jax", "numpy"]),
        ("errors", ["jax", "numpy"]),
        ("data", ["jax", "flax"]),
        ("functional", ["flax", "optax"]),
        ("model", ["optax", "orbax", "tensorflow_datasets"]),
        ("devices", ["flax", "optax", "orbax"]),
        ("decoding", ["flax", "optax", "orbax"]),
        ("config", ["jax", "flax"]),
        ("cli", ["jax", "flax"]),
        ("main", ["jax", "flax"]),
    ],
)
def test_a_room_is_imported_without_what_it_must_not_know(room, absent):
    modules = [
        "t2t_jax." + ".".join(path.with_suffix("").parts)
        for path in FILES
        if room_of(path) == room and path.name != "__init__.py"
    ]
    assert modules
    program = (
        "import importlib, sys\n"
        f"for name in {modules!r}:\n"
        "    importlib.import_module(name)\n"
        f"print(sorted(set({absent!r}) & set(sys.modules)))\n"
    )
    assert run_python(program) == "[]\n"


@pytest.mark.parametrize("name", ["__version__", "train"])
def test_the_package_is_imported_without_jax(name):
    program = f"import sys, t2t_jax; t2t_jax.{name}; print('jax' in sys.modules)"
    assert run_python(program) == "False\n"


def test_public_names_are_listed_and_another_one_is_an_attribute_error():
    assert set(t2t_jax.__all__) <= set(dir(t2t_jax))
    with pytest.raises(AttributeError, match="no attribute 'Transfomer'"):
        _ = t2t_jax.Transfomer
