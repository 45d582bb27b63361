"""`--mode=serve`: serves models over HTTP, with LibreTranslate's API and a page."""

from __future__ import annotations

import dataclasses
import importlib.util
import ipaddress
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.console.text_io import flush_before_exit
from t2t_jax.cli.flags.translation import ServeOptions
from t2t_jax.errors import ErrorCollector, InputMissingError, UserError
from t2t_jax.run.text_facts import only_pair
from t2t_jax.run.workdir import Workdir
from t2t_jax.serving.config import ServingConfig

if TYPE_CHECKING:
    from t2t_jax.inference.model import TranslationModel

_EXTRA = ("prometheus_client", "python_multipart", "starlette", "uvicorn")
_PAIR = re.compile(
    r"([a-z]{2,3}(?:_[A-Za-z]+)?)-([a-z]{2,3}(?:_[A-Za-z]+)?)=(.+)", re.DOTALL
)
_MAX_KEY_BYTES = 1 << 16


def run(options: ServeOptions) -> int:
    """Serves the models of `options.workdir` until a signal.

    Raises:
      UserError: a flag is wrong, a model or package is missing, the port is in use.
    """
    _require_extra()
    config = _serving_config(options)
    workdirs = _workdirs(options)
    from t2t_jax.serving.server import open_socket, serve, url_of

    opened = open_socket(options.host, options.port)
    with opened:
        # Imports JAX: after all that can be wrong without it.
        from t2t_jax.serving.app import make_app
        from t2t_jax.serving.languages import Languages
        from t2t_jax.serving.worker import TranslationWorker

        models = _load(options, workdirs)
        worker = TranslationWorker(Languages(models), capacity=config.max_waiting)
        worker.warm_up()
        serve(
            make_app(models, config, worker=worker),
            opened,
            config,
            on_ready=lambda: log(f"Serving on {url_of(options.host, opened)}"),
        )
    if not worker.close():
        # A program is being compiled, during which the interpreter cannot end.
        flush_before_exit()
        os._exit(0)
    return 0


def _require_extra() -> None:
    missing = [name for name in _EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"--mode=serve requires {' and '.join(missing)}, not installed here. Run: "
            "pip install 't2t-jax[serve]'"
        )


def _serving_config(options: ServeOptions) -> ServingConfig:
    """Checks the flags of the server."""
    errors = ErrorCollector()
    if options.config_given:
        errors.messages.append(
            "--mode=serve uses the configurations of its models, not --config. Leave "
            "it out."
        )
    if unused := [key for key in options.overrides if not key.startswith("decoding.")]:
        errors.messages.append(
            f"--mode=serve takes the keys of config.decoding only, not config."
            f"{', config.'.join(unused)}. Leave them out."
        )
    keys = _api_keys(options)
    if not is_loopback(options.host) and not keys:
        errors.messages.append(
            f"--host={options.host} can be reached from other machines, which requires "
            "an API key. Pass --api_key_file=FILE with a key in each line, or use "
            "--host=127.0.0.1."
        )
    errors.raise_if_any(UserError)
    return ServingConfig(
        api_keys=keys,
        allowed_hosts=_allowed_hosts(options),
        cors_origins=frozenset(_split(options.cors_origin)),
        log_text=options.log_text,
        max_characters=options.max_characters,
        max_waiting=options.max_waiting,
        request_timeout=options.request_timeout,
    )


def is_loopback(host: str) -> bool:
    """Returns whether an address can be reached from this machine only.

    Example:
      >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0")]
      [True, True, True, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _allowed_hosts(options: ServeOptions) -> frozenset[str]:
    """Returns the names in requests that are served; empty for all."""
    named = [host.lower() for host in _split(options.allowed_hosts)]
    if not is_loopback(options.host):
        return frozenset(named)
    return frozenset([*named, options.host, "localhost", "127.0.0.1", "::1"])


def _split(text: str) -> list[str]:
    return [part.strip().rstrip("/") for part in text.split(",") if part.strip()]


def _api_keys(options: ServeOptions) -> frozenset[str]:
    keys = [options.api_key] if options.api_key else []
    if options.api_key:
        log(
            "warning: other users of this machine can see --api_key in the list of "
            "processes. Use --api_key_file."
        )
    if path := options.api_key_file:
        try:
            with open(path, "rb") as file:
                content = file.read(_MAX_KEY_BYTES + 1)
            if len(content) > _MAX_KEY_BYTES:
                raise UserError(
                    f"--api_key_file={path} must have at most {_MAX_KEY_BYTES} bytes, "
                    "and has more. Pass a file with one API key in each line."
                )
            text = content.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise InputMissingError(
                f"--api_key_file={path} cannot be read: {reason}. Pass another file."
            ) from error
        found = [line.strip() for line in text.splitlines()]
        found = [line for line in found if line and not line.startswith("#")]
        if not found:
            raise UserError(
                f"--api_key_file={path} must have an API key in a line, and has none. "
                "Add one, such as the output of: openssl rand -hex 16"
            )
        if not all(map(str.isprintable, found)):
            raise UserError(
                f"--api_key_file={path} must have printable API keys, and has one with "
                "control characters. Pass a text file."
            )
        keys += found
    return frozenset(keys)


def _workdirs(options: ServeOptions) -> dict[tuple[str, str], Workdir]:
    """Returns the directory of each pair of languages.

    Raises:
      UserError: a directory is not a run or model, or languages are not known.
    """
    text = str(options.workdir.path)
    parts = text.split(",") if _PAIR.match(text) else [text]
    found: dict[tuple[str, str], Workdir] = {}
    errors = ErrorCollector()
    for part in parts:
        named = _PAIR.fullmatch(part)
        workdir = Workdir(Path(named[3]).expanduser() if named else Path(part))
        if errors.try_call(lambda one: one.require() or one, workdir) is None:
            continue
        pair = (named[1], named[2]) if named else errors.try_call(_pair_of, workdir)
        if pair in found:
            raise UserError(
                f"--workdir={text} must have one model for each pair of languages, "
                f"and {'-'.join(pair)} is given twice. Leave one out."
            )
        elif pair:
            found[pair] = workdir
    errors.raise_if_any()
    return found


def _pair_of(workdir: Workdir) -> tuple[str, str]:
    """Returns the languages of a model from the names of its training files."""
    pair = only_pair(workdir, workdir.read_config())
    if pair is None:
        raise UserError(
            f"--workdir={workdir.path} must have one known pair of languages. Pass it: "
            f"--workdir=SOURCE-TARGET={workdir.path}, such as en-de={workdir.path}"
        )
    return pair


def _load(
    options: ServeOptions, workdirs: dict[tuple[str, str], Workdir]
) -> dict[tuple[str, str], TranslationModel]:
    from t2t_jax.inference.load import load

    overrides = {
        key.partition(".")[2]: value for key, value in options.overrides.items()
    }
    models = {}
    for pair, workdir in workdirs.items():
        decoding = dataclasses.replace(workdir.read_config().decoding, **overrides)
        model = load(workdir.path, checkpoint=options.checkpoint, decoding=decoding)
        log(f"Loaded {'-'.join(pair)}: {workdir.path}, step {model.step:,}.")
        models[pair] = model
    return models
