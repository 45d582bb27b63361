"""Declares the options of the modes that translate or score text."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_jax.cli.flags.options import DistributedOptions, ModelOptions
from t2t_jax.cli.flags.values import COUNT, FILE, PATHS, SHARDS, SWITCH, flag

VASWANI, TOKENIZED, PARSING = PROTOCOLS = ("vaswani2017", "tokenized", "parsing")

SAMPLING_FLAGS = ("temperature", "top_k", "top_p", "sampling_seed")
"""The flags that require `sample`."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PairOptions(ModelOptions):
    """Of the modes that compare a text with its translation."""

    source: str = flag(
        "Source sentences, one per line; plain text or .gz.", FILE, required=True
    )
    reference: str = flag(
        "Reference translations, one per line; plain text or .gz.",
        FILE,
        required=True,
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SearchOptions(ModelOptions, DistributedOptions):
    """Of the modes that search for translations.

    Flags with a `key` have the value of that key of `config`.

    Attributes:
      ensemble: directories of more models.
    """

    is_read_only = True

    ensemble: tuple[str, ...] = flag(
        "More runs or models, DIR,DIR, whose probabilities are averaged with those of "
        "--workdir.",
        PATHS,
    )
    beam_size: int = flag(
        "Hypotheses per sentence; 1 with --length_penalty=0 is greedy search.",
        metavar="N",
        key="decoding.beam_size",
    )
    length_penalty: float = flag(
        "Alpha of the paper; 0 compares plain log-probabilities.",
        metavar="X",
        key="decoding.length_penalty",
    )
    length_normalization: str = flag(
        "What --length_penalty is the exponent of: paper, (5 + n) / 6 of n tokens, or "
        "power, n.",
        metavar="NAME",
        key="decoding.length_normalization",
    )
    n_best: int = flag(
        "Translations per line, best first, or samples; with --format=tsv or jsonl.",
        metavar="N",
        key="decoding.n_best",
    )
    segment: str = flag(
        "Which lines are translated sentence by sentence: auto, those that are longer "
        "than the lines of the training text; sentences, all; lines, none.",
        metavar="NAME",
        key="decoding.segment",
    )
    min_tokens: int = flag(
        "Minimum number of tokens of a translation.",
        metavar="N",
        key="decoding.min_tokens",
    )
    max_extra_tokens: int = flag(
        "Maximum number of tokens by which a translation may exceed its source.",
        metavar="N",
        key="decoding.max_extra_tokens",
    )
    sample: bool = flag(
        "Sample tokens from the model's distribution instead of searching.",
        SWITCH,
        key="decoding.sample",
    )
    temperature: float = flag(
        "With --sample: divides the logits; below 1 favours probable tokens.",
        metavar="X",
        key="decoding.temperature",
    )
    top_k: int = flag(
        "With --sample: sample among this many most probable tokens; 0 is all.",
        metavar="N",
        key="decoding.top_k",
    )
    top_p: float = flag(
        "With --sample: sample among the most probable tokens that add up to this "
        "probability.",
        metavar="X",
        key="decoding.top_p",
    )
    sampling_seed: int = flag(
        "With --sample: random seed.", metavar="N", key="decoding.seed"
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LineOptions(ModelOptions):
    """Of translating lines.

    Attributes:
      input: `-` is stdin.
      output: `-` is stdout.
      format: "" is text.
      shards: 0 if not given.
    """

    output: str = flag("File for the results; - is stdout.", FILE, default="-")
    format: str = flag(
        "Format of the results; of parsers also trees in brackets, and drawn as text.",
        metavar="FORMAT",
        choices=("text", "tsv", "jsonl", "brackets", "tree"),
    )
    input: str = flag(
        "File to translate, one sentence per line; - is stdin.", FILE, default="-"
    )
    stream: bool = flag(
        "Translate each line of stdin as it arrives, instead of in batches.", SWITCH
    )
    strict: bool = flag("Exit with code 65 at an input line that is not UTF-8.", SWITCH)
    prefixes: str = flag(
        "Forced prefixes of the translations, one line per line of --input; an empty "
        "line forces no prefix.",
        FILE,
        excludes="stream",
    )
    terms: str = flag(
        "Words or phrases that the translations must contain, one line per line of "
        "--input, with tabs between several; an empty line requires none.",
        FILE,
        excludes="stream",
    )
    token_scores: bool = flag(
        "Add the log-probability of each token; with --format=tsv or jsonl.", SWITCH
    )
    alignments: bool = flag(
        "Add the most attended source token of each token; with --format=tsv or jsonl.",
        SWITCH,
    )
    shards: int = flag(
        "Translate --input in this many parts, kept in OUTPUT.shards until all are "
        "complete.",
        SHARDS,
        excludes="stream",
    )
    resume: bool = flag(
        "Continue an interrupted job with --shards.", SWITCH, requires="shards"
    )


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
      last: 0 means `checkpoint.keep` with the paper's protocol, and no average else.
    """

    mode = "evaluate"
    about = "scores translations of --source against --reference"
    examples = (
        "evaluate --workdir=runs/mine --source=test.en --reference=test.de",
        "evaluate --workdir=runs/mine --source=test.en --reference=test.de "
        "--protocol=vaswani2017 --hypotheses=out.de",
    )

    n_best: int = 1  # not a flag: the best is evaluated
    source: str = flag(
        "Source sentences, one per line; plain text or .gz. With --protocol=parsing "
        "the words of the trees, if not given.",
        FILE,
        required=True,
        unless="protocol=parsing",
    )
    reference: str = flag(
        "Reference translations, one per line; plain text or .gz. With "
        "--protocol=parsing gold trees in Penn brackets.",
        FILE,
        required=True,
    )
    protocol: str = flag(
        "Evaluate with bootstrap intervals, vaswani2017 as the paper does: checkpoint "
        "averaging, its beam search, its tokenized BLEU; tokenized with the run's own "
        "search: BLEU of Moses tokens, not comparable with sacreBLEU on raw text; "
        "parsing with the run's own search: EVALB's scores of trees.",
        metavar="NAME",
        choices=PROTOCOLS,
        excludes="ensemble",
    )
    baseline: str = flag(
        "Another system's translations of --source, for a paired significance test.",
        FILE,
    )
    hypotheses: str = flag(
        "File to write the translations to; with --protocol=parsing trees in brackets.",
        FILE,
    )
    parameters: str = flag(
        "Parameter file of EVALB; if not given, the usual rules for Penn treebanks.",
        FILE,
        metavar="FILE.prm",
        requires="protocol=parsing",
    )
    tokenize: str = flag(
        "How sacreBLEU splits lines into tokens; none if source and reference are "
        "tokenized already: then no protocol tokenizes them again.",
        metavar="NAME",
        key="evaluation.tokenize",
    )
    lowercase: bool = flag(
        "Compare lower-cased tokens.", SWITCH, requires="protocol=tokenized"
    )
    target_language: str = flag(
        "Language of the target, for Moses's tokenization; if not given, that of the "
        "training text, or the ending of --reference.",
        metavar="CODE",
        requires="protocol",
    )
    last: int = flag(
        "With --protocol: number of newest periodic checkpoints to average; if not "
        "given, checkpoint.keep with vaswani2017, and with the others none: "
        "--checkpoint is evaluated.",
        COUNT,
        requires="protocol",
    )
    force: bool = flag(
        "Also average checkpoints that are not evenly spaced.",
        SWITCH,
        requires="protocol",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScoreOptions(PairOptions):
    """Options of `--mode=score`.

    Attributes:
      output: `-` is stdout.
      format: "" is tsv.
    """

    mode = "score"
    about = "prints the log-probability of each pair of --source and --reference"
    examples = (
        "score --workdir=runs/mine --source=test.en --reference=test.de",
        "score --workdir=runs/mine --source=test.en --reference=test.de "
        "--format=jsonl --output=scores.jsonl",
    )
    is_read_only = True

    output: str = flag("File for the results; - is stdout.", FILE, default="-")
    format: str = flag(
        "Format of the results.", metavar="FORMAT", choices=("tsv", "jsonl")
    )
