"""Config files: those that come with the package, and the user's own."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from absl import flags
from ml_collections import config_dict, config_flags

from t2t_jax.config import default
from t2t_jax.errors import ConfigError, InputMissingError
from t2t_jax.parsing import nearest

# ml_collections loads a file as this module, into what the file before it has left.
_MODULE = "config_config"


def shipped_configs() -> dict[str, Path]:
    """Lists the config files that come with the package, by name.

    Returns:
      Names such as "phrasebook" and their files, in a clone or an installed package.
    """
    package = Path(__file__).parent
    for folder in (package.parent / "configs", package / "configs"):
        if (folder / "phrasebook.py").is_file():
            files = sorted(folder.glob("[!_]*.py"))
            return {file.stem: file for file in files}
    return {}


def default_config() -> config_dict.ConfigDict:
    """Returns the paper's base experiment, to be varied and trained.

    Text is not part of it: set `config.data.train` and `config.data.dev`.

    Returns:
      A locked ConfigDict: its keys can be set, and a key that does not exist is an
      `AttributeError`.

    Paper: Table 3, row base; §5.

    Example:
      >>> config = default_config()
      >>> config.model.num_layers = 2
    """
    return default()


def load_config(name: str | Path) -> config_dict.ConfigDict:
    """Loads the configuration of a config file.

    The file is Python code and is run, as with `--config` on the command line.

    Args:
      name: the path of a config file, or the name of one that comes with the package,
        such as "phrasebook" or "wmt_en_de"; with ":ROW" at its end where a file holds
        several experiments, as "table3:A_h1".

    Returns:
      A locked ConfigDict: its keys can be set, and a key that does not exist is an
      `AttributeError`.

    Raises:
      InputMissingError: there is no such file.
      ConfigError: the file cannot be loaded, or has no such row.

    Example:
      >>> config = load_config("phrasebook")
      >>> config.steps, load_config("table3:C_N2").model.num_layers
      (500, 2)
    """
    path, _, row = str(name).partition(":")
    shipped = shipped_configs()
    file = Path(path) if Path(path).is_file() else shipped.get(path)
    if file is None:
        raise InputMissingError(
            f"{path} is not a config file.{nearest(path, list(shipped))} Pass the path "
            f"of a Python file, or one of {', '.join(shipped)}."
        )
    full = f"{file}:{row}" if row else str(file)
    values, line = flags.FlagValues(), ["t2t_jax", f"--config={full}"]
    sys.modules.pop(_MODULE, None)
    try:
        config_flags.DEFINE_config_file(
            "config", None, "The experiment.", flag_values=values, sys_argv=line
        )
        values(line)
        config = values.config
        config.lock()
    except Exception as error:
        raise config_file_error(full, error) from error
    finally:
        sys.modules.pop(_MODULE, None)
    return config


def config_file_error(path: str, error: Exception) -> ConfigError:
    """Explains why a config file that exists cannot be loaded.

    Args:
      path: of the file, with its row.
      error: what loading it has raised.

    Returns:
      The error to raise, which names the line.
    """
    name, _, row = path.partition(":")
    raised = [cause for cause in _causes(error) if isinstance(cause, ConfigError)]
    if raised:  # The first one: ml_collections wraps what a config file raises.
        return raised[-1]
    if row and "positional argument" in str(error):
        return ConfigError(
            f"{name} has no rows. Leave :{row} out, or use a file that has rows, such "
            "as configs/table3.py."
        )
    line = next(
        (
            f", line {frame.lineno}"
            for frame in reversed(traceback.extract_tb(error.__traceback__))
            if Path(frame.filename).name == Path(name).name
        ),
        "",
    )
    hint = f" (with the argument {row!r})" if row else ""
    return ConfigError(f"{name}{line} cannot be loaded{hint}: {_gist(error)}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an error, what it came of, what that came of, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _gist(error: Exception) -> str:
    """Keeps the first line of a message, and the last, which may hold a cause."""
    # ml_collections quotes some messages, which hides that they have lines.
    text = str(error).replace("\\n", "\n").strip(" \n'")
    first, *others = text.splitlines() or [""]
    first = first.partition(" Other fields present")[0]
    return "\n".join([f"{type(error).__name__}: {first}", *others[-1:]])
