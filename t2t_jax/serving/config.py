"""Limits of the server (standard library only)."""

from __future__ import annotations

import dataclasses
import math

from t2t_jax.errors import ErrorCollector, UserError


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServingConfig:
    """What the server accepts, and for how long it waits.

    Attributes:
      api_keys: clients must send one of these; empty for no keys.
      allowed_hosts: names that the header Host may hold, without a port; empty for any.
        The defense of a server on loopback against DNS rebinding.
      cors_origins: origins, such as `https://example.org`, whose pages may use the
        server; `*` for all.
      log_text: whether texts and translations are logged; no log holds any otherwise.
      max_body_bytes (bytes): largest body of a request.
      max_characters (characters): longest text of a request, all of its texts together.
      max_texts (texts): most texts in one request.
      max_sentences (sentences): most sentences in one request, which may have half of
        `max_waiting` at most.
      max_detailed_characters (characters): longest text of a request for alternatives,
        scores of tokens, alignments and attention.
      max_detailed_sentence (characters): longest sentence of a request for the last
        three, whose weights grow with the square of its length.
      max_waiting (sentences): capacity of the queue; requests beyond get status 429.
      max_connections (connections): open at a time.
      request_timeout (seconds): a request that takes longer gets status 504.
      read_timeout (seconds): for the header of a request, and again for its body.
      write_timeout (seconds): for a client to accept a part of a response.

    Raises:
      UserError: a limit is not a positive number.
    """

    api_keys: frozenset[str] = frozenset()
    allowed_hosts: frozenset[str] = frozenset()
    cors_origins: frozenset[str] = frozenset()
    log_text: bool = False
    max_body_bytes: int = 2**20
    max_characters: int = 100_000
    max_texts: int = 1_000
    max_sentences: int = 2_000
    max_detailed_characters: int = 4_000
    max_detailed_sentence: int = 1_000
    max_waiting: int = 8_000
    max_connections: int = 1_000
    request_timeout: float = 60.0
    read_timeout: float = 10.0
    write_timeout: float = 30.0

    def __post_init__(self) -> None:
        problems = ErrorCollector()
        for name, value in vars(self).items():
            if name.startswith("max_") or name.endswith("_timeout"):
                rule = f"{name}={value!r} must be finite and above 0. Change it."
                problems.check(0 < value < math.inf, rule)
        problems.raise_if_any(UserError)
