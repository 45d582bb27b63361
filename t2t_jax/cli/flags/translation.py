"""Declares the options of the modes that translate, score or serve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from t2t_jax.cli.flags.options import DistributedOptions, ModelOptions
from t2t_jax.cli.flags.values import (
    COUNT,
    DIRECTORY,
    FILE,
    PATHS,
    PORT,
    POSITIVE,
    SHARDS,
    SWITCH,
    flag,
)

if TYPE_CHECKING:
    from t2t_jax.run.workdir import Workdir

VASWANI, TOKENIZED, PARSING = PROTOCOLS = ("vaswani2017", "tokenized", "parsing")

SAMPLING_FLAGS = ("temperature", "top_k", "top_p", "sampling_seed")
"""The flags that require `sample`."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PairOptions(ModelOptions):
    """Of the modes that compare a text with its translation.

    Attributes:
      source: Source sentences, one per line; plain text or .gz.
      reference: Reference translations, one per line; plain text or .gz.
    """

    source: str = flag(FILE, required=True)
    reference: str = flag(FILE, required=True)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SearchOptions(ModelOptions, DistributedOptions):
    """Of the modes that search for translations.

    Flags with a `key` have the value and the meaning of that key of `config`.

    Attributes:
      ensemble: More runs or models, DIR,DIR, whose probabilities are averaged with
        those of --workdir.
      target_language: Language to translate into, such as de, of a model that was
        trained with tags of several; lines may begin with a tag, >>de<<, instead.
    """

    is_read_only = True

    ensemble: tuple[str, ...] = flag(PATHS)
    target_language: str = flag(metavar="CODE")
    beam_size: int = flag(key="decoding.beam_size")
    length_penalty: float = flag(key="decoding.length_penalty")
    length_normalization: str = flag(key="decoding.length_normalization")
    n_best: int = flag(key="decoding.n_best")
    segment: str = flag(key="decoding.segment")
    min_tokens: int = flag(key="decoding.min_tokens")
    max_extra_tokens: int = flag(key="decoding.max_extra_tokens")
    sample: bool = flag(key="decoding.sample")
    temperature: float = flag(key="decoding.temperature")
    top_k: int = flag(key="decoding.top_k")
    top_p: float = flag(key="decoding.top_p")
    sampling_seed: int = flag(key="decoding.seed")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LineOptions(ModelOptions):
    """Of translating lines.

    Attributes:
      output: File for the results; - is stdout.
      format: Format of the results; of parsers also trees in brackets, and drawn as
        text. Several translations per line, by --n_best, need tsv or jsonl.
      input: File to translate, one sentence per line; - is stdin.
      stream: Translate each line of stdin as it arrives, instead of in batches.
      strict: Exit with code 65 at an input line that is not UTF-8.
      prefixes: Forced prefixes of the translations, one line per line of --input; an
        empty line forces no prefix.
      terms: Words or phrases that the translations must contain, one line per line of
        --input, with tabs between several; an empty line requires none.
      token_scores: Add the log-probability of each token; with --format=tsv or jsonl.
      alignments: Add the most attended source token of each token; with --format=tsv or
        jsonl.
      shards: Translate --input in this many parts, kept in OUTPUT.shards until all are
        complete.
      resume: Continue an interrupted job with --shards.
    """

    output: str = flag(FILE, default="-")
    format: str = flag(
        metavar="FORMAT", choices=("text", "tsv", "jsonl", "brackets", "tree")
    )
    input: str = flag(FILE, default="-")
    stream: bool = flag(SWITCH)
    strict: bool = flag(SWITCH)
    prefixes: str = flag(FILE, excludes="stream")
    terms: str = flag(FILE, excludes="stream")
    token_scores: bool = flag(SWITCH)
    alignments: bool = flag(SWITCH)
    shards: int = flag(SHARDS, excludes="stream")
    resume: bool = flag(SWITCH, requires="shards")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TranslateOptions(SearchOptions, LineOptions):
    """Options of `--mode=translate`."""

    mode = "translate"
    about = "translates stdin (or --input) to stdout (or --output)"
    examples = (
        "translate --workdir=runs/mine --input=in.txt --output=out.txt",
        "translate --workdir=runs/mine --beam_size=8 --n_best=8 --format=jsonl",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EvaluateOptions(SearchOptions, PairOptions):
    """Options of `--mode=evaluate`.

    Attributes:
      source: Source sentences, one per line; plain text or .gz. With --protocol=parsing
        the words of the trees, if not given.
      reference: Reference translations, one per line; plain text or .gz. With
        --protocol=parsing gold trees in Penn brackets.
      protocol: Evaluate with bootstrap intervals, vaswani2017 as the paper does:
        checkpoint averaging, its beam search, its tokenized BLEU; tokenized with the
        run's own search: BLEU of Moses tokens, not comparable with sacreBLEU on raw
        text; parsing with the run's own search: EVALB's scores of trees.
      baseline: Another system's translations of --source, for a paired significance
        test.
      hypotheses: File to write the translations to; with --protocol=parsing trees in
        brackets.
      parameters: Parameter file of EVALB; if not given, the usual rules for Penn
        treebanks.
      lowercase: Compare lower-cased tokens.
      target_language: Language to translate into, such as de, of a model that was
        trained with tags of several; with --protocol also that of Moses's
        tokenization: if not given, that of the training text, or the ending of
        --reference.
      last: With --protocol: number of newest periodic checkpoints to average; if not
        given, checkpoint.keep with vaswani2017, and with the others none: --checkpoint
        is evaluated.
      force: Also average checkpoints that are not evenly spaced.
    """

    mode = "evaluate"
    about = "scores translations of --source against --reference"
    examples = (
        "evaluate --workdir=runs/mine --source=test.en --reference=test.de",
        "evaluate --workdir=runs/mine --source=test.en --reference=test.de "
        "--protocol=vaswani2017 --hypotheses=out.de",
    )

    n_best: int = 1  # not a flag: the best is evaluated
    source: str = flag(FILE, required=True, unless="protocol=parsing")
    protocol: str = flag(metavar="NAME", choices=PROTOCOLS, excludes="ensemble")
    baseline: str = flag(FILE)
    hypotheses: str = flag(FILE)
    parameters: str = flag(FILE, metavar="FILE.prm", requires="protocol=parsing")
    tokenize: str = flag(key="evaluation.tokenize")
    lowercase: bool = flag(SWITCH, requires="protocol=tokenized")
    last: int = flag(COUNT, requires="protocol")
    force: bool = flag(SWITCH, requires="protocol")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScoreOptions(PairOptions):
    """Options of `--mode=score`.

    Attributes:
      output: File for the results; - is stdout.
      format: Format of the results.
      target_language: Language of --reference, such as de, of a model that was trained
        with tags of several; sources may begin with a tag, >>de<<, instead.
    """

    mode = "score"
    about = "prints the log-probability of each pair of --source and --reference"
    examples = (
        "score --workdir=runs/mine --source=test.en --reference=test.de",
        "score --workdir=runs/mine --source=test.en --reference=test.de "
        "--format=jsonl --output=scores.jsonl",
    )
    is_read_only = True

    output: str = flag(FILE, default="-")
    format: str = flag(metavar="FORMAT", choices=("tsv", "jsonl"))
    target_language: str = flag(metavar="CODE")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ServeOptions(ModelOptions):
    """Options of `--mode=serve`.

    Attributes:
      workdir: Directory of the run or model; or of several, with their languages:
        en-de=DIR,de-en=DIR.
      host: Address to serve on; others than loopback require an API key.
      port: Port to serve on; 0 chooses a free one.
      api_key_file: File with API keys, one per line, of which clients must send one.
      api_key: An API key that clients must send; visible to other users of this
        machine.
      allowed_hosts: On loopback: further host names in requests, such as that of a
        proxy, separated by commas.
      cors_origin: Origins whose pages may use the server, such as https://example.org,
        separated by commas; * for all.
      log_text: Log texts and translations to stderr.
      max_characters: Longest text of a request; longer ones get status 413.
      max_waiting: Most sentences that may wait; requests beyond get status 429.
      request_timeout: Seconds after which a request gets status 504.
    """

    mode = "serve"
    about = "serves --workdir over HTTP: LibreTranslate's API, and a page"
    examples = (
        "serve --workdir=runs/mine",
        "serve --workdir=en-de=runs/a,de-en=runs/b --port=8000",
    )
    is_read_only = True
    reads_config = False

    workdir: Workdir = flag(DIRECTORY, required=True)
    host: str = flag(default="127.0.0.1", metavar="HOST")
    port: int = flag(PORT, default="5000")
    api_key_file: str = flag(FILE)
    api_key: str = flag(metavar="KEY")
    allowed_hosts: str = flag(metavar="HOST,HOST")
    cors_origin: str = flag(metavar="ORIGIN")
    log_text: bool = flag(SWITCH)
    max_characters: int = flag(COUNT, default="100000")
    max_waiting: int = flag(COUNT, default="8000")
    request_timeout: float = flag(POSITIVE, default="60")
