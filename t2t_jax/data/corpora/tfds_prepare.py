"""Has TensorFlow Datasets download a set and write it as array_record.

Few builders of translation sets need TensorFlow, which the extra tfds-prepare installs.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from t2t_jax.errors import ConfigError, InputMissingError, UserError, write_error

_WRITE_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
_EXTRA = "pip install 't2t-jax[tfds-prepare]'"
_FORMAT = "array_record"
# TFDS tries 11 times, with pauses of three minutes in all and no timeout.
_RETRIES = 2
_TIMEOUTS = (5.0, 60.0)  # seconds to connect, and between two bytes
_THREADS = 16


def import_tfds() -> ModuleType:
    """Imports tensorflow_datasets on first use, as it takes half a second."""
    return importlib.import_module("tensorflow_datasets")


def download_and_prepare(
    name: str, home: Path, *, key: str, log: Callable[[str], None]
) -> None:
    """Downloads and writes a set.

    Raises:
      ConfigError: TFDS has no such set or config.
      InputMissingError: a download fails, or must be made by hand.
      OSError: the disk is full.
      OutputError: the set cannot be written.
      UserError: TensorFlow is needed and not installed.
    """
    tfds = import_tfds()
    with _tfds_errors(name, home), _bounded_downloads():
        # Import only the translation sets: TFDS's own search imports all subjects and
        # fails at the first that needs TensorFlow.
        importlib.import_module("tensorflow_datasets.translate")
        builder = _find_builder(tfds, name, home, key=key)
        log(_download_message(builder, name, home))
        builder.download_and_prepare(
            file_format=_FORMAT,
            # TFDS's own store holds sets in a TensorFlow format.
            download_config=tfds.download.DownloadConfig(try_download_gcs=False),
        )


def _find_builder(tfds: ModuleType, name: str, home: Path, *, key: str) -> Any:
    known = ""
    try:
        kind = tfds.builder_cls(name.partition("/")[0])
        known = f", whose configs are {', '.join(kind.builder_configs) or 'none'}"
        return tfds.builder(name, data_dir=home, file_format=_FORMAT)
    except ValueError as error:
        raise ConfigError(
            f"{key}: TFDS has no translation set {name}{known}. Change config.{key}, "
            f"or prepare the set yourself under {home}."
        ) from error


class _Threads:
    """An executor of daemon threads.

    Python waits for a normal executor's threads at exit: after a signal a download
    could run on for hours.
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        for _ in range(_THREADS):
            threading.Thread(target=self._run, daemon=True).start()

    def submit(
        self, function: Callable[..., Any], /, *args: Any, **kw: Any
    ) -> Future[Any]:
        """Runs a function in one of the threads."""
        future: Future[Any] = Future()
        self._work.put((future, lambda: function(*args, **kw)))
        return future

    def _run(self) -> None:
        while True:
            future, function = self._work.get()
            try:
                future.set_result(function())
            except BaseException as error:  # Re-raised by future.result().
                future.set_exception(error)


@contextlib.contextmanager
def _bounded_downloads() -> Iterator[None]:
    """Bounds TFDS's retries and timeouts and uses daemon threads, by patching it."""
    downloader: Any = importlib.import_module(
        "tensorflow_datasets.core.download.downloader"
    )
    extractor: Any = importlib.import_module(
        "tensorflow_datasets.core.download.extractor"
    )
    open_url = downloader._open_with_requests
    get_downloader, get_extractor = downloader.get_downloader, extractor.get_extractor

    def with_threads(loader: Any) -> Any:
        if not isinstance(loader._executor, _Threads):  # shared by all sets
            loader._executor = _Threads()
        return loader

    changes = [
        (downloader, "MAX_RETRIES", _RETRIES),
        (
            downloader,
            "_open_with_requests",
            lambda url, **kw: open_url(url, **{"timeout": _TIMEOUTS, **kw}),
        ),
        (
            downloader,
            "get_downloader",
            lambda *args, **kw: with_threads(get_downloader(*args, **kw)),
        ),
        (extractor, "get_extractor", lambda: with_threads(get_extractor())),
    ]
    with contextlib.ExitStack() as undo:
        logger = logging.getLogger("urllib3")  # It warns at each retry.
        undo.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.ERROR)
        for module, name, value in changes:
            undo.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, value)
        yield


@contextlib.contextmanager
def _tfds_errors(name: str, home: Path) -> Iterator[None]:
    try:
        # TFDS prints to stdout, where results belong.
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except UserError:
        raise
    except Exception as error:  # Builders raise anything.
        causes = list(_causes(error))
        reason = (str(error) or type(error).__name__).splitlines()[0][:300]
        if any(isinstance(c, ImportError) and "tensorflow" in str(c) for c in causes):
            raise UserError(
                f"TFDS needs TensorFlow to prepare {name} ({reason}). It is not needed "
                f"afterwards.\n{_EXTRA}"
            ) from error
        for cause in causes:
            if isinstance(cause, OSError) and cause.errno in _WRITE_ERRNOS:
                raise write_error(
                    home,
                    cause,
                    problem=f"TFDS cannot write {name} there",
                    advice="set TFDS_DATA_DIR to another directory",
                ) from error
        if unreachable := _unreachable_host(causes):
            raise InputMissingError(
                f"TFDS cannot download {name}: {unreachable}.\nRerun with a network, "
                "or prepare the set on another machine and copy it to "
                f"{home / name.split('/')[0]}."
            ) from error
        raise InputMissingError(
            f"TFDS cannot prepare {name} ({type(error).__name__}: {reason}).\nRerun "
            f"to resume with what is in {home / 'downloads'}, or prepare "
            f"the set on another machine and copy {home / name.split('/')[0]}."
        ) from error


def _unreachable_host(causes: Iterable[BaseException]) -> str:
    for cause in causes:
        # Exceptions of requests, which only TFDS imports.
        url = getattr(getattr(cause, "request", None), "url", None)
        unanswered = getattr(cause, "response", None) is None
        if isinstance(cause, OSError) and url and unanswered:
            host = urlsplit(url).hostname or url
            return f"{host} cannot be reached ({type(cause).__name__})"
    return ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _download_message(builder: Any, name: str, home: Path) -> str:
    urls = _urls(builder)
    begin = f"{name} is not in {home}: TFDS downloads and prepares it"
    if not urls:
        return f"{begin}. Its size is not known."
    known = [builder.url_infos[url].size for url in urls if url in builder.url_infos]
    hosts = ", ".join(sorted({urlsplit(url).hostname or url for url in urls}))
    unknown = f", {len(urls) - len(known)} of them of unknown size"
    return (
        f"{begin}. It downloads {len(urls)} file(s) from {hosts}, "
        f"{sum(known) / 1e6:,.0f} MB{unknown if len(known) < len(urls) else ''}; "
        "unpacked and rewritten they take several times that. If TensorFlow is "
        f"needed: {_EXTRA}"
    )


class _Recorder:
    """A fake download manager that records the requested URLs."""

    manual_dir = Path("manual")

    def __init__(self) -> None:
        self.urls: dict[str, None] = {}

    def download_and_extract(self, resources: Any) -> Any:
        """Records every URL of a nested structure; returns paths in their place."""
        if isinstance(resources, dict):
            return {k: self.download_and_extract(v) for k, v in resources.items()}
        if isinstance(resources, str) or not isinstance(resources, Iterable):
            self.urls[str(getattr(resources, "url", resources))] = None
            return Path("nowhere")
        return [self.download_and_extract(each) for each in resources]

    download = download_and_extract

    def extract(self, path: Any) -> Any:
        """Returns its argument: nothing was downloaded."""
        return path


def _urls(builder: Any) -> list[str]:
    recorder = _Recorder()
    with contextlib.suppress(Exception):
        # It may open files that are not downloaded, and fail.
        builder._split_generators(recorder)
    return list(recorder.urls)
