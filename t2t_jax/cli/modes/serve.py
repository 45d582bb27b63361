"""`--mode=serve`: serves models over HTTP, with LibreTranslate's API and a page."""

from __future__ import annotations

import dataclasses
import importlib.util
import ipaddress
import os
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.console.text_io import flush_before_exit
from t2t_jax.cli.flags.options import ServeOptions
from t2t_jax.cli.flags.parse_argv import explaining_foreign
from t2t_jax.data.corpora.corpus import truncate
from t2t_jax.data.vocabulary.tokenizers import LANGUAGE_CODE
from t2t_jax.errors import ErrorCollector, InputMissingError, UserError
from t2t_jax.quantities import usable_processors
from t2t_jax.run.text import Pair, languages_of
from t2t_jax.run.workdir import Workdir
from t2t_jax.serving.config import ServingConfig

if TYPE_CHECKING:
    from t2t_jax.run.inference.model import TranslationModel

_EXTRA = ("prometheus_client", "python_multipart", "starlette", "uvicorn")
_PAIR = re.compile(f"({LANGUAGE_CODE})-({LANGUAGE_CODE})=(.+)", re.DOTALL)
_MAX_KEY_BYTES = 1 << 16
# XLA has a thread for each processor. On fewer than these, a short request would wait
# for chunks of the two large batches that are translated meanwhile.
_XLA_THREADS = 3


def run(options: ServeOptions) -> None:
    """Serves the models of `options.workdir` until a signal.

    Raises:
      UserError: a flag is wrong, a model or package is missing, the port is in use.
    """
    missing = [name for name in _EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"--mode=serve requires {' and '.join(missing)}, not installed here. Run: "
            "pip install 't2t-jax[serve]'"
        )
    config, workdirs = _serving_config(options), _workdirs(options)
    from t2t_jax.serving.server import open_socket, serve, url_of

    with open_socket(options.host, options.port) as opened:
        os.environ.setdefault("PJRT_NPROC", str(max(_XLA_THREADS, usable_processors())))
        # Imports JAX: after all that can be wrong without it.
        from t2t_jax.serving.app import make_app
        from t2t_jax.serving.languages import Languages
        from t2t_jax.serving.worker import TranslationWorker

        each = dict.fromkeys(workdirs.values())
        loaded = {workdir: _load(options, workdirs, workdir) for workdir in each}
        models = {pair: loaded[workdir] for pair, workdir in workdirs.items()}
        worker = TranslationWorker(Languages(models), capacity=config.max_waiting)
        worker.warm_up()
        app, url = make_app(models, config, worker=worker), url_of(options.host, opened)
        serve(app, opened, config, on_ready=lambda: log(f"Serving on {url}"))
    if not worker.close():
        # A program is being compiled, during which the interpreter cannot end.
        flush_before_exit()
        os._exit(0)


def _serving_config(options: ServeOptions) -> ServingConfig:
    """Checks the flags of the server."""
    errors = ErrorCollector()
    advice = "--mode=serve uses the configurations of its models. Leave --config out."
    errors.check(not options.config_given, advice)
    unused = [f"config.{k}" for k in options.overrides if not k.startswith("decoding.")]
    errors.check(
        not unused,
        f"--mode=serve takes the keys of config.decoding only, not {', '.join(unused)}."
        " Leave them out.",
    )
    keys = _read_keys(options.api_key_file) if options.api_key_file else []
    if options.api_key:
        keys.append(options.api_key)
        log("warning: other users of this machine see --api_key. Use --api_key_file.")
    is_local = is_loopback(options.host)
    errors.check(
        is_local or bool(keys),
        f"--host={options.host} can be reached from other machines, which requires an "
        "API key. Pass --api_key_file=FILE with a key in each line, or another --host.",
    )
    errors.raise_if_any(UserError)
    local = [options.host, "localhost", "127.0.0.1", "::1"] * is_local
    return ServingConfig(
        api_keys=frozenset(keys),
        allowed_hosts=frozenset([*_split(options.allowed_hosts.lower()), *local]),
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
    with suppress(ValueError):
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    return False


def _split(text: str) -> list[str]:
    return [part.strip().rstrip("/") for part in text.split(",") if part.strip()]


def _read_keys(path: str) -> list[str]:
    """Reads the API keys of a file."""
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_KEY_BYTES + 1)
    except OSError as error:
        raise InputMissingError(
            f"--api_key_file={path} cannot be read: {error.strerror}. Pass another."
        ) from error
    lines = map(str.strip, content.decode(errors="surrogateescape").splitlines())
    keys = [line for line in lines if line and not line.startswith("#")]
    for rule, holds in (
        (f"at most {_MAX_KEY_BYTES} bytes", len(content) <= _MAX_KEY_BYTES),
        ("an API key in a line, and has none", bool(keys)),
        ("printable API keys in UTF-8", all(map(str.isprintable, keys))),
    ):
        if not holds:
            raise UserError(
                f"--api_key_file={path} must have {rule}. Pass a text file with a key "
                "in each line, such as the output of: openssl rand -hex 16"
            )
    return keys


def _workdirs(options: ServeOptions) -> dict[Pair, Workdir]:
    """Returns the directory of each pair of languages.

    Raises:
      UserError: a directory is not a run or model, or languages are not known.
    """
    text, errors = str(options.workdir.path), ErrorCollector()
    parts = text.split(",") if any(map(_PAIR.match, text.split(","))) else [text]
    found = [errors.try_call(_named_workdirs, part) for part in parts]
    errors.raise_if_any()
    named = [one for some in found for one in some]
    pairs = [pair for pair, _ in named]
    if twice := [pair for pair, count in Counter(pairs).items() if count > 1]:
        raise UserError(
            f"--workdir={text} must have one model for each pair of languages, and "
            f"{'-'.join(twice[0])} is given twice. Leave one out."
        )
    return dict(named)


def _named_workdirs(part: str) -> list[tuple[Pair, Workdir]]:
    """Returns languages and directory of SOURCE-TARGET=DIR, or of all pairs of DIR."""
    named = _PAIR.fullmatch(part)
    workdir = Workdir(Path(named[3]).expanduser() if named else Path(part))
    with explaining_foreign({"workdir": workdir}):
        config = workdir.read_config()
    if named:
        return [((named[1], named[2]), workdir)]
    pairs = languages_of(workdir, config)
    tags = workdir.read_vocabularies(config.vocabulary).source.tags
    if tags:
        sources = dict.fromkeys(source for source, _ in pairs)
        every = [(one, to) for one in sources or tags for to in tags if one != to]
        pairs = [pair for pair in pairs if pair[1] in tags] or every
    if not pairs or (len(pairs) > 1 and not tags):
        raise UserError(
            f"--workdir={workdir.path} must have one known pair of languages. Pass it: "
            f"--workdir=SOURCE-TARGET={workdir.path}, such as en-de={workdir.path}"
        )
    return [(pair, workdir) for pair in pairs]


def _load(
    options: ServeOptions, workdirs: dict[Pair, Workdir], workdir: Workdir
) -> TranslationModel:
    from t2t_jax.run.inference.load import load

    own = {key.partition(".")[2]: value for key, value in options.overrides.items()}
    decoding = dataclasses.replace(workdir.read_config().decoding, **own)
    model = load(workdir.path, checkpoint=options.checkpoint, decoding=decoding)
    pairs = ["-".join(pair) for pair, one in workdirs.items() if one == workdir]
    log(f"Loaded {truncate(', '.join(pairs))}: {workdir.path}, step {model.step:,}.")
    return model
