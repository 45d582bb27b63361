"""Has TensorFlow Datasets download a set and write it as array_record.

Most builders of translation sets need no TensorFlow for that. Where one does, the
extra tfds-prepare installs it.
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

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
_EXTRA = "pip install -e '.[tfds-prepare]'"
_FORMAT = "array_record"
# TFDS tries 11 times, with pauses of three minutes in all and no timeout.
_RETRIES = 2
_TIMEOUTS = (5.0, 60.0)  # seconds to connect, and between two bytes
_THREADS = 16


def import_tfds() -> ModuleType:
    """Imports tensorflow_datasets, which takes half a second, and only where used."""
    return importlib.import_module("tensorflow_datasets")


def download_and_prepare(
    name: str, home: Path, *, key: str, say: Callable[[str], None]
) -> None:
    """Downloads and writes a set.

    Args:
      name: of set and config, such as wmt14_translate/de-en.
      home: where TFDS keeps its sets.
      key: the configuration key that asks for it.
      say: tells people what is downloaded, how much it is, and where to.

    Raises:
      ConfigError: TFDS has no such set or config.
      InputMissingError: something cannot be downloaded, or is to be by hand.
      OSError: the disk is full.
      OutputError: the set cannot be written.
      UserError: TensorFlow is needed and not installed.
    """
    tfds = import_tfds()
    with _told(name, home), _patient():
        # The translation sets register when they are imported. Those of TFDS's other
        # subjects need TensorFlow for it, and its own search ends at the first.
        importlib.import_module("tensorflow_datasets.translate")
        builder = _find_builder(tfds, name, home, key=key)
        say(_announcement(builder, name, home))
        builder.download_and_prepare(
            file_format=_FORMAT,
            # What lies prepared in TFDS's own store is in a format for TensorFlow.
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
    """Stands for an executor, in threads that end with the process.

    Python waits for those of an executor before it exits: after a signal a download of
    hours would go on.
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        for _ in range(_THREADS):
            threading.Thread(target=self._run, daemon=True).start()

    def submit(self, act: Callable[..., Any], /, *args: Any, **kw: Any) -> Future[Any]:
        """Has a thread do something."""
        future: Future[Any] = Future()
        self._work.put((future, lambda: act(*args, **kw)))
        return future

    def _run(self) -> None:
        while True:
            future, act = self._work.get()
            try:
                future.set_result(act())
            except BaseException as error:  # Whoever waits for the future gets it.
                future.set_exception(error)


@contextlib.contextmanager
def _patient() -> Iterator[None]:
    """Bounds how long TFDS tries to reach a host, and lets signals end it.

    TFDS has settings for none of this.
    """
    downloader: Any = importlib.import_module(
        "tensorflow_datasets.core.download.downloader"
    )
    extractor: Any = importlib.import_module(
        "tensorflow_datasets.core.download.extractor"
    )
    open_url = downloader._open_with_requests
    get_downloader, get_extractor = downloader.get_downloader, extractor.get_extractor

    def with_threads(made: Any) -> Any:
        if not isinstance(made._executor, _Threads):  # TFDS has one for all sets.
            made._executor = _Threads()
        return made

    logger = logging.getLogger("urllib3")
    level = logger.level
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
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    logger.setLevel(logging.ERROR)  # Each attempt is a warning of its own.
    try:
        for module, name, value in changes:
            setattr(module, name, value)
        yield
    finally:
        logger.setLevel(level)
        for module, name, value in before:
            setattr(module, name, value)


@contextlib.contextmanager
def _told(name: str, home: Path) -> Iterator[None]:
    """Turns whatever goes wrong inside into an error that says what to do."""
    try:
        # TFDS prints to stdout, where results belong.
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except UserError:
        raise
    except Exception as error:  # Builders are foreign code, and raise what they like.
        causes = list(_causes(error))
        reason = (str(error) or type(error).__name__).splitlines()[0][:300]
        if any(isinstance(c, ImportError) and "tensorflow" in str(c) for c in causes):
            raise UserError(
                f"TFDS needs TensorFlow to prepare {name} ({reason}). It is not needed "
                f"afterwards.\n{_EXTRA}"
            ) from error
        for cause in causes:
            if isinstance(cause, OSError) and cause.errno in _NO_ROOM:
                raise write_error(
                    home,
                    cause,
                    told=f"TFDS cannot write {name} there",
                    change="set TFDS_DATA_DIR to another directory",
                ) from error
        if unreachable := _unreachable(causes):
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


def _unreachable(causes: Iterable[BaseException]) -> str:
    """Names the host from which no answer came, and the error, if that is the cause."""
    for cause in causes:
        # Those of requests, which only TFDS imports.
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


def _announcement(builder: Any, name: str, home: Path) -> str:
    urls = _urls(builder)
    told = f"{name} is not in {home}: TFDS downloads and prepares it"
    if not urls:
        return f"{told}. It does not say how large it is."
    known = [builder.url_infos[url].size for url in urls if url in builder.url_infos]
    hosts = ", ".join(sorted({urlsplit(url).hostname or url for url in urls}))
    unsaid = f", {len(urls) - len(known)} of them of a size that it does not say"
    return (
        f"{told}. It downloads {len(urls)} file(s) from {hosts}, "
        f"{sum(known) / 1e6:,.0f} MB{unsaid if len(known) < len(urls) else ''}; "
        "unpacked and rewritten they take several times that. Should it ask for "
        f"TensorFlow: {_EXTRA}"
    )


class _Recorder:
    """Stands for a download manager, and notes what it is asked for."""

    manual_dir = Path("manual")

    def __init__(self) -> None:
        self.urls: dict[str, None] = {}

    def download_and_extract(self, resources: Any) -> Any:
        """Notes every address of a nest, and returns the nest with paths for them."""
        if isinstance(resources, dict):
            return {k: self.download_and_extract(v) for k, v in resources.items()}
        if isinstance(resources, str) or not isinstance(resources, Iterable):
            self.urls[str(getattr(resources, "url", resources))] = None
            return Path("nowhere")
        return [self.download_and_extract(each) for each in resources]

    download = download_and_extract

    def extract(self, path: Any) -> Any:
        """Returns what it got: nothing is there to unpack."""
        return path


def _urls(builder: Any) -> list[str]:
    """Lists what a builder will download, as far as it tells before it has."""
    recorder = _Recorder()
    with contextlib.suppress(Exception):
        # It may well look into what it believes to be downloaded, and fail.
        builder._split_generators(recorder)
    return list(recorder.urls)
