"""What a user of `import t2t_jax` meets: exact types, docstrings, Python's words."""

import ast
import inspect
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import t2t_jax
from tests.architecture.test_safety import FILES, tree_of
from tests.docs.commands import blocks
from tests.integration.tiny import ROOT

PUBLIC = {name: getattr(t2t_jax, name) for name in t2t_jax.__all__}
FUNCTIONS = [name for name, value in PUBLIC.items() if inspect.isfunction(value)]
METHODS = [
    f"{name}.{member}"
    for name in (
        *("TranslationModel", "Translation", "Hypothesis", "PairScore"),
        *("Vocabulary", "Checkpoints"),
    )
    for member, value in vars(PUBLIC[name]).items()
    if not member.startswith("_")
    and (inspect.isfunction(value) or isinstance(value, property))
]

# What only the command line calls, so that its errors may name flags.
OF_THE_COMMAND_LINE = (
    *("cli/", "main.py", "run/inference/average.py", "checkpointing/averaging.py"),
    *("run/inference/model_dir.py", "exchange/", "evaluation/tokenized_bleu.py"),
    *("evaluation/bracketing/__main__.py", "evaluation/bracketing/right_branching.py"),
    *("devices/distributed/cluster.py", "training/stopping.py", "report/doctor.py"),
    # These name commands to run in a shell.
    *("training/step_meter.py", "training/reporting/profiler.py"),
    "data/corpora/tfds.py",
)


def found(path):
    value = t2t_jax
    for name in path.split("."):
        value = inspect.getattr_static(value, name, None) or getattr(value, name)
    return value.fget if isinstance(value, property) else value


def mentions_any(hint):
    return hint is typing.Any or any(map(mentions_any, typing.get_args(hint)))


def returned(function):
    names = {
        **vars(sys.modules[function.__module__]),
        "TranslationModel": t2t_jax.TranslationModel,
    }
    wanted = {"return": function.__annotations__["return"]}
    carrier = type("Carrier", (), {"__annotations__": wanted})
    return typing.get_type_hints(carrier, globalns=names)["return"]


@pytest.mark.parametrize("name", [*FUNCTIONS, *METHODS])
def test_everything_public_returns_an_exact_type(name):
    hint = returned(found(name))
    arrays_of_numbers = "ndarray" in str(hint)  # numpy's own hint has an Any
    assert arrays_of_numbers or not mentions_any(hint), hint


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_explains_itself(name):
    text = inspect.getdoc(found(name))
    if inspect.signature(found(name)).parameters:
        for part in ("Args:", "Returns:", "Raises:", "Example:"):
            assert part in text, part


def test_every_public_name_has_an_example_that_is_run():
    """In its docstring, or as `t2t_jax.name` in a block of Python of a page.

    Only what others return or raise needs none.
    """
    pages = [path.read_text() for path in (ROOT / "docs").rglob("*.md")]
    code = "\n".join(b.code for page in pages for b in blocks(page) if not b.skipped)
    imported = re.findall(r"from t2t_jax import (.*)", code)
    shown = {*re.findall(r"\bt2t_jax\.(\w+)", code), *re.findall(r"\w+", str(imported))}
    returned = {"__version__", "Config", "Hypothesis", "Translation", "UserError"}
    for name in [*{*t2t_jax.__all__} - shown - returned, "Vocabulary.load"]:
        prompts = re.findall(r"(?:>>>|\.\.\.) (.*)", found(name).__doc__ or "")
        assert any(f"{name}(" in line for line in prompts), name


def test_a_strict_type_checker_accepts_a_program_with_every_public_name():
    path = Path(__file__).with_name("user_program.py")
    found = ast.walk(ast.parse(path.read_text()))
    used = [node.attr for node in found if isinstance(node, ast.Attribute)]
    assert {*t2t_jax.__all__} <= {*used}
    mypy = [sys.executable, "-m", "mypy", "--strict", path]
    done = subprocess.run(mypy, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def strings_of(tree):
    """Yields the strings of a file, without those that are statements."""
    said = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_string and id(node) not in said:
            yield node.value


def test_messages_that_python_users_meet_name_arguments_and_no_flags():
    # Advice to run a command line, and what only the command line shows, may name them.
    flags = re.compile(r"--(?!mode=recover)[a-z]{2}|same command\b")
    shown = (
        *("run/estimates.py", "devices/distributed/signals.py", "report/run_page.py"),
        "data/vocabulary/tokenizers.py",  # The flags of spm_train.
    )
    wrong = {
        str(path): names
        for path in FILES
        if not str(path).startswith((*OF_THE_COMMAND_LINE, "config_files.py", *shown))
        and (names := [s for s in strings_of(tree_of(path)) if flags.search(s)])
    }
    assert wrong == {}
