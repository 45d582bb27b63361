"""Finds and loads configuration files, and explains why one cannot be loaded."""

from __future__ import annotations

import ast
import difflib
import re
import sys
import traceback
from contextlib import suppress
from pathlib import Path

from absl import flags
from ml_collections import config_dict, config_flags

from t2t_jax.config import KINDS, default, defaults, keys, sections
from t2t_jax.config_keys import unknown_key
from t2t_jax.errors import ConfigError, InputMissingError, UserError, error_chain

# ml_collections loads every file as this module, into the namespace of the previous.
_MODULE = "config_config"
_LOCKED = re.compile(r'Key "(\w+)" does not exist|instead of "(\w+)"')
_FIELD = re.compile(r"'(\w+)\\*':")
_OVERRIDE = re.compile(
    r"Could not override field '(\w+)' .*\. (.*) is of original type <class '(\w+)'>"
)
_KINDS = {kind.__name__: text for kind, text in KINDS.items()}


def shipped_directory() -> Path:
    """Finds the directory of the shipped configurations: installed, or in a clone.

    Raises:
      InputMissingError: the installation lacks them.
    """
    package = Path(__file__).parent
    for folder in (package / "configs", package.parent / "configs"):
        if (folder / "phrasebook.py").is_file():
            return folder
    raise InputMissingError(
        "The shipped configurations are not installed. Pass --config=FILE.py."
    )


def shipped_names() -> list[str]:
    """Lists the shipped configurations, valid as `--config=NAME`."""
    files = shipped_directory().glob("*.py")
    return sorted(path.stem for path in files if path.stem != "__init__")


def default_config() -> config_dict.ConfigDict:
    """Returns the paper's base experiment, to be modified and trained.

    Set `config.data.train` and `config.data.dev`: it includes no text.

    Returns:
      A locked ConfigDict; unknown keys raise an `AttributeError`.

    Paper: Table 3, row base; §5.

    Example:
      >>> config = default_config()
      >>> config.model.num_layers = 2
    """
    return default()


def load_config(name: str | Path) -> config_dict.ConfigDict:
    """Loads the configuration of a config file.

    The file is executed as Python code, as with `--config` on the command line.

    Args:
      name: a path, or the name of a shipped configuration, such as "phrasebook";
        followed by ":ROW" if the file has rows, as "table3:A_h1".

    Returns:
      A locked ConfigDict; unknown keys raise an `AttributeError`.

    Raises:
      InputMissingError: the file does not exist.
      ConfigError: the file cannot be loaded, or the row does not exist.

    Example:
      >>> load_config("table3:C_N2").model.num_layers
      2
    """
    if not isinstance(name, str | Path):
        raise TypeError(
            f"load_config takes a name or a path, not a {type(name).__name__}. Pass "
            '"phrasebook", or the path of a Python file.'
        )
    try:
        return load(resolve(str(name)))
    except UserError as error:  # Here it is an argument, not a flag.
        raise type(error)(p.replace("--config=", "") for p in error.problems) from error


def load(path: str) -> config_dict.ConfigDict:
    """Loads a configuration, as `load_config` does.

    Args:
      path: the value of `--config`, resolved, with `:ROW`.
    """
    values, line = flags.FlagValues(), ["t2t_jax", f"--config={path}"]
    sys.modules.pop(_MODULE, None)
    try:
        config_flags.DEFINE_config_file(
            "config", None, "The experiment.", flag_values=values, sys_argv=line
        )
        values(line)
        config = values.config
        config.lock()
    except (Exception, SystemExit) as error:
        raise explain_load_failure(path, error) from error
    finally:
        sys.modules.pop(_MODULE, None)
    return config


def _kind_of(path: str) -> str:
    """Returns file, directory, other (a pipe or a device), or "" for nothing."""
    with suppress(OSError, ValueError):  # too long; a null byte
        found = Path(path)
        if found.exists():
            return (
                "file" if found.is_file() else "directory" * found.is_dir() or "other"
            )
    return ""


def resolve(given: str) -> str:
    """Returns the path of a configuration, `:ROW` included.

    Args:
      given: the value of `--config`: a shipped name (without `/` and `.py`), or a path.

    Raises:
      InputMissingError: no configuration has that name, or the path is a pipe or a
        device, which may never reach its end.
    """
    name, colon, row = given.partition(":")
    if not name or "/" in name or name.endswith(".py"):
        if _kind_of(name) == "other":
            raise InputMissingError(
                f"--config={name} is a pipe or a device. Pass a Python file."
            )
        return given
    known = shipped_names()
    if name in known:
        return f"{shipped_directory() / name}.py{colon}{row}"
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean --config={near[0]}?" if near else ""
    if _kind_of(name) == "file":
        if _has_other_suffix(name):
            raise _not_a_configuration(name)
        hint = f" Pass a path as --config=./{name}."
    raise InputMissingError(
        f"--config={name}: no shipped configuration has this name.{hint} "
        f"Shipped: {', '.join(known)}. Files end in .py."
    )


def default_row(path: str) -> str:
    """Returns the row that a configuration without `:ROW` takes, or "".

    Args:
      path: the value of `--config`, resolved, of a file that can be loaded.
    """
    if ":" in path:
        return ""
    for node in ast.parse(Path(path).read_bytes()).body:
        if isinstance(node, ast.FunctionDef) and node.name == "get_config":
            for value in node.args.defaults:
                if isinstance(value, ast.Constant):
                    return str(value.value)
    return ""


def explain_load_failure(path: str, error: BaseException) -> UserError:
    """Turns an exception raised by loading a configuration into a user error.

    Args:
      path: the value of `--config`, resolved, with `:ROW`.
      error: the exception.
    """
    name, _, row = path.partition(":")
    kind = _kind_of(name)
    if kind == "directory":
        return InputMissingError(f"--config={name} is a directory. Pass a Python file.")
    if not name or kind != "file":
        return _missing(path)
    causes = list(error_chain(error))
    raised = [cause for cause in causes if isinstance(cause, ConfigError)]
    if raised:  # The innermost: ml_collections wraps exceptions of the file.
        return raised[-1]
    if _has_other_suffix(name):
        return _not_a_configuration(name)
    text = str(causes[-1])  # the innermost; the others quote its traceback
    if "positional argument" in text and "get_config()" in text:
        wrong = f"{name} has no rows. Leave :{row} out, or pass a file with rows"
        if not row:
            wrong = f"{name} has rows. Pass one of them, as --config={name}:ROW"
        return ConfigError(f"--config={path}: {wrong}, such as --config=table3:base.")
    frame = _frame_in(name, causes)
    where = f"{name}, line {frame.lineno}" if frame else name
    line = (frame.line or "") if frame else ""
    return ConfigError(_reason(causes, where=where, line=line, path=path))


def _has_other_suffix(name: str) -> bool:
    return Path(name).suffix not in ("", ".py")


def _not_a_configuration(name: str) -> ConfigError:
    return ConfigError(
        f"--config={name}: not a Python file. Pass a configuration file FILE.py, or a "
        "shipped name, such as --config=own_text:small. To set the training text, use "
        "config.data.train, such as text:SOURCE,TARGET."
    )


def _missing(path: str) -> InputMissingError:
    name, colon, row = path.partition(":")
    row = f"{colon}{row}"
    where = "" if Path(name).is_absolute() else f" in {Path.cwd()}"
    stem = Path(name).stem
    try:
        known = shipped_names()
    except InputMissingError:
        known = []
    if stem in known:
        return InputMissingError(
            f"--config={name}: there is no such file{where}. For the shipped "
            f"configuration of that name, pass --config={stem}{row}."
        )
    listed = f" or one of the shipped names: {', '.join(known)}" if known else ""
    return InputMissingError(
        f"--config={name}: there is no such file{where if name else ''}. "
        f"Pass a Python file{listed}."
    )


def _reason(causes: list[BaseException], *, where: str, line: str, path: str) -> str:
    """Formats why an existing file cannot be loaded, from its innermost cause."""
    texts, origin = [str(cause) for cause in causes], causes[-1]
    name, _, row = path.partition(":")
    if "object has no attribute 'lock'" in texts[0]:
        return (
            f"{name}: get_config() did not return a configuration. Start it with "
            "config = t2t_jax.default_config() and end it with return config."
        )
    if "has no attribute 'get_config'" in "".join(texts):
        return (
            f"{name} does not define get_config(). Define it, and return a "
            "configuration that starts from t2t_jax.default_config()."
        )
    for text in texts:
        if wrong_key := _LOCKED.search(text):
            key = _section_with(_FIELD.findall(text)) + (wrong_key[1] or wrong_key[2])
            return f"{where}: {unknown_key(key, known=keys())}"
        if wrong_type := _OVERRIDE.search(text):
            return f"{where}: {_wrong_type(*wrong_type.groups(), line=line)}"
    hint = f" (with the argument {row!r})" if row else ""
    first = (str(origin).splitlines() or [""])[0]
    return f"{where} cannot be loaded{hint}: {type(origin).__name__}: {first}"


def _wrong_type(name: str, value: str, kind: str, *, line: str) -> str:
    """Formats a type error; `line` of the file distinguishes equal key names."""
    known = [key for key in keys() if key.rpartition(".")[2] == name]
    key = next((key for key in known if key in line), known[0] if known else name)
    wanted = KINDS[type(defaults().get(key, ""))]
    return (
        f"config.{key} must be {wanted}, but {value} is "
        f"{_KINDS.get(kind, 'of another type')}. Change config.{key}."
    )


def _section_with(fields: list[str]) -> str:
    """Returns "section." for the section that has these keys, or ""."""
    for section in sections():
        if fields and {f"{section}.{field}" for field in fields} <= set(keys()):
            return f"{section}."
    return ""


def _frame_in(name: str, causes: list[BaseException]) -> traceback.FrameSummary | None:
    """Finds the innermost frame of an error that lies in a file."""
    for cause in causes:
        for frame in reversed(traceback.extract_tb(cause.__traceback__)):
            if Path(frame.filename).name == Path(name).name:
                return frame
    return None
