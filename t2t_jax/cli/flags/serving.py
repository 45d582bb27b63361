"""Declares the options of `--mode=serve`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from t2t_jax.cli.flags.options import ModelOptions
from t2t_jax.cli.flags.values import (
    COUNT,
    DIRECTORY,
    FILE,
    PORT,
    POSITIVE,
    SWITCH,
    flag,
)

if TYPE_CHECKING:
    from t2t_jax.run.workdir import Workdir


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ServeOptions(ModelOptions):
    """Options of `--mode=serve`.

    Attributes:
      workdir: its path is the text of the flag, which may be several.
      api_key: "" for none.
    """

    mode = "serve"
    about = "serves --workdir over HTTP: LibreTranslate's API, and a page"
    examples = (
        "serve --workdir=runs/mine",
        "serve --workdir=en-de=runs/a,de-en=runs/b --port=8000",
    )
    is_read_only = True
    reads_config = False

    workdir: Workdir = flag(
        "Directory of the run or model; or of several, with their languages: "
        "en-de=DIR,de-en=DIR.",
        DIRECTORY,
        required=True,
    )
    host: str = flag(
        "Address to serve on; others than loopback require an API key.",
        default="127.0.0.1",
        metavar="HOST",
    )
    port: int = flag("Port to serve on; 0 chooses a free one.", PORT, default="5000")
    api_key_file: str = flag(
        "File with API keys, one per line, of which clients must send one.", FILE
    )
    api_key: str = flag(
        "An API key that clients must send; visible to other users of this machine.",
        metavar="KEY",
    )
    allowed_hosts: str = flag(
        "On loopback: further host names in requests, such as that of a proxy, "
        "separated by commas.",
        metavar="HOST,HOST",
    )
    cors_origin: str = flag(
        "Origins whose pages may use the server, such as https://example.org, "
        "separated by commas; * for all.",
        metavar="ORIGIN",
    )
    log_text: bool = flag("Log texts and translations to stderr.", SWITCH)
    max_characters: int = flag(
        "Longest text of a request; longer ones get status 413.",
        COUNT,
        default="100000",
    )
    max_waiting: int = flag(
        "Most sentences that may wait; requests beyond get status 429.",
        COUNT,
        default="8000",
    )
    request_timeout: float = flag(
        "Seconds after which a request gets status 504.", POSITIVE, default="60"
    )
