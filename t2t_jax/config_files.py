"""Finds and loads configuration files, and explains why one cannot be loaded."""

from __future__ import annotations

import ast
import difflib
import os
import re
import runpy
import traceback
from pathlib import Path

from ml_collections import config_dict

from t2t_jax.config import KINDS, default, defaults, keys, unknown_key
from t2t_jax.data.line_arguments import wrong_type
from t2t_jax.errors import ConfigError, InputMissingError, rewording

_ASSIGNMENT = re.compile(r"config\.([\w.]+) *=")
_LOCKED = re.compile(r'Key "(\w+)" does not exist')


def shipped_directory() -> Path:
    """Finds the directory of the shipped configurations: installed, or in a clone.

    Raises:
      InputMissingError: the installation lacks them.
    """
    package = Path(__file__).parent
    for folder in (package / "configs", package.parent / "configs"):
        if (folder / "phrasebook.py").is_file():
            return folder
    missing = "The shipped configurations are not installed."
    raise InputMissingError(f"{missing} Pass --config=FILE.py.")


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
        advice = 'Pass "phrasebook", or the path of a Python file.'
        raise wrong_type("load_config takes a name or a path", name, advice)
    # Here it is an argument, not a flag.
    with rewording(lambda problem: problem.replace("--config=", "")):
        return load(resolve(str(name)))


def load(path: str) -> config_dict.ConfigDict:
    """Loads a configuration, as `load_config` does.

    Args:
      path: the value of `--config`, resolved, with `:ROW`.
    """
    name, *row = path.split(":", 1)
    try:
        get_config = runpy.run_path(name).get("get_config")
        config = get_config(*row) if get_config else None
        if not isinstance(config, config_dict.ConfigDict):
            raise ConfigError(
                f"{name} must define get_config(), which returns a configuration. "
                "Start it with config = t2t_jax.default_config() and end it with "
                "return config."
            )
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        _require_suffix(name, error)
        raise ConfigError(_reason(path, error)) from error
    config.lock()
    return config


def resolve(given: str) -> str:
    """Returns the path of a configuration, `:ROW` included.

    Args:
      given: the value of `--config`: a shipped name (without `/` and `.py`), or a path.

    Raises:
      InputMissingError: no configuration has that name, or the path is not that of a
        file; a pipe or a device may never reach its end.
    """
    name, colon, row = given.partition(":")
    is_path = not name or "/" in name or name.endswith(".py")
    if is_path and os.path.isfile(name):
        return given
    if is_path and os.path.exists(name):
        what = f"--config={name} is a directory, a pipe or a device"
        raise InputMissingError(f"{what}. Pass a Python file.")
    known, stem = shipped_names(), Path(name).stem
    if name in known:
        return f"{shipped_directory() / name}.py{colon}{row}"
    where = f" in {Path.cwd()}" if name and not Path(name).is_absolute() else ""
    problem, hint = "no shipped configuration has this name", ""
    if is_path:
        problem = f"there is no such file{where}"
    if stem in known:
        to_pass = f"{stem}{colon}{row}"
        hint = f" For the shipped configuration of that name, pass --config={to_pass}."
    elif os.path.isfile(name):
        _require_suffix(name)
        hint = f" Pass a path as --config=./{name}."
    elif near := difflib.get_close_matches(name, known, n=1):
        hint = f" Did you mean --config={near[0]}?"
    raise InputMissingError(
        f"--config={name}: {problem}.{hint} Shipped: {', '.join(known)}. Files end in "
        ".py."
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
            rows = [v.value for v in node.args.defaults if isinstance(v, ast.Constant)]
            return str(*rows[:1])
    return ""


def _require_suffix(name: str, cause: BaseException | None = None) -> None:
    """Raises a ConfigError if a file has another suffix than Python's."""
    if Path(name).suffix not in ("", ".py"):
        raise ConfigError(
            f"--config={name}: not a Python file. Pass a configuration file FILE.py, "
            "or a shipped name, such as --config=own_text:small. To set the training "
            "text, use config.data.train, such as text:SOURCE,TARGET."
        ) from cause


def _reason(path: str, error: BaseException) -> str:
    """Formats why an existing file cannot be loaded."""
    name, _, row = path.partition(":")
    if "positional argument" in str(error) and "get_config()" in str(error):
        wrong = f"{name} has no rows. Leave :{row} out, or pass a file with rows"
        if not row:
            wrong = f"{name} has rows. Pass one of them, as --config={name}:ROW"
        return f"--config={path}: {wrong}, such as --config=table3:base."
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((one for one in reversed(frames) if one.filename == name), None)
    where = f"{name}, line {frame.lineno}" if frame else name
    assigned = _ASSIGNMENT.match(((frame and frame.line) or "").strip())
    named = assigned or _LOCKED.search(str(error))
    key = named[1] if named else ""
    if key and key not in keys():
        return f"{where}: {unknown_key(key)}"
    if key and isinstance(error, TypeError):
        wanted = KINDS[type(defaults()[key])]
        return f"{where}: config.{key} must be {wanted}. Change config.{key}."
    hint = f" (with the argument {row!r})" if row else ""
    first = (str(error).splitlines() or [""])[0]
    return f"{where} cannot be loaded{hint}: {type(error).__name__}: {first}"
