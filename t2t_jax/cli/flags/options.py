"""Declares the options of each mode: a dataclass whose fields are its flags.

The docstring of a class is the help page of its mode: what it does, two command lines,
and what its flags mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

from t2t_jax.cli.flags.values import (
    ADDRESS,
    CANDIDATES,
    COUNT,
    DIRECTORIES,
    DIRECTORY,
    FILE,
    FILES,
    INDEX,
    LANGUAGES,
    LICENSE,
    LOSS,
    PERCENT,
    PORT,
    POSITIVE,
    SHARDS,
    SHARE,
    STEPS,
    SWITCH,
    flag,
)
from t2t_jax.devices.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.exchange.formats import (
    EXPORT_FORMATS,
    IMPORT_FORMATS,
    POSITIONS,
    QUANTIZATIONS,
    QUANTIZED_FORMATS,
)

if TYPE_CHECKING:
    from t2t_jax.config import Config
    from t2t_jax.run.workdir import Workdir

VASWANI, TOKENIZED, PARSING = PROTOCOLS = ("vaswani2017", "tokenized", "parsing")

SAMPLING_FLAGS = ("temperature", "top_k", "top_p", "sampling_seed")
"""The flags that require `sample`."""

OPTIONS: dict[str, type[Options]] = {}
"""Mode -> the class of its options, in the order of this file."""

_QUANTIZED = f"format={'|'.join(QUANTIZED_FORMATS)}"


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Options:
    """What every mode takes.

    Attributes:
      mode: What to do; the mode's name may also stand first, without --mode=.
      about: What the mode does, from its docstring; its name with `python -OO`.
      is_read_only: Whether the mode never writes to a run: a signal may end it at any
        time.
      reads_config: Whether it uses the configuration of the run in `workdir`.
      uses_jax: Whether it computes with JAX; else no cache of programs is set up, and
        a configuration has no effect and is refused.
      config: Of the run; for an existing workdir its own, with the overrides.
      overrides: The `--config.KEY=VALUE` flags, including those of earlier commands.
      workdir: Directory of the run, or of an averaged or exported model.
    """

    mode: ClassVar[str]
    about: ClassVar[str]
    is_read_only: ClassVar[bool] = False
    reads_config: ClassVar[bool] = True
    uses_jax: ClassVar[bool] = True

    config: Config
    overrides: dict[str, Any]
    config_given: bool
    workdir_given: bool = False
    workdir: Workdir = flag(DIRECTORY)

    def __init_subclass__(cls, *, mode: str = "", **facts: bool) -> None:
        """Makes a dataclass of a subclass, sets its facts, and lists that of a mode."""
        for name, value in facts.items():
            setattr(cls, name, value)
        about = (cls.__doc__ or mode).partition("\n")[0].removesuffix(".")
        cls.mode, cls.about = mode, about[:1].lower() + about[1:]
        # Without eq and repr it takes a third of the time, at every start.
        dataclass(frozen=True, kw_only=True, eq=False, repr=False)(cls)
        if mode:
            OPTIONS[mode] = cls


class RunOptions(Options):
    """Of the modes that use an existing run or model."""

    workdir: Workdir = flag(DIRECTORY, required=True)


class ModelOptions(RunOptions):
    """Of the modes that load one checkpoint.

    Attributes:
      checkpoint: Checkpoint to use: the one with the best development BLEU, the last
        one, or the one of a step.
    """

    checkpoint: str = flag(default="best", metavar="best|last|STEP")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LanguageOptions:
    """Of the modes that take lines of one of the model's languages.

    Attributes:
      source_language: Language of the source, of a model that reads it, such as
        M2M-100; lines may begin with both, >>en-de<<, instead.
      target_language: Language to translate into, such as de, of a model that was
        trained with tags of several; lines may begin with a tag, >>de<<, instead.
    """

    source_language: str = flag(metavar="CODE")
    target_language: str = flag(metavar="CODE")

    @property
    def languages(self) -> dict[str, str | None]:
        """The arguments of `translate` and `score`."""
        names = ("source_language", "target_language")
        return {name: getattr(self, name) or None for name in names}


class DistributedOptions(Options):
    """Of the modes that can run on several processes.

    Attributes:
      coordinator_address: Address of process 0, for processes started by hand; not
        needed under Slurm or on a TPU pod.
      num_processes: Number of processes started by hand.
      process_id: Rank of this process, from 0.
      processes: Set once they are initialized.
    """

    coordinator_address: str = flag(ADDRESS)
    num_processes: int = flag(COUNT)
    process_id: int | None = flag(INDEX)
    processes: Processes = SINGLE_PROCESS


class TrainOptions(DistributedOptions, mode="train"):
    """Trains a model, or resumes the run in --workdir.

    Examples:
      train
      train --config=own_text:small --config.steps=5000

    Attributes:
      workdir: Directory of the run, created or resumed; runs/NAME of the configuration
        if not given.
    """


class PrepareOptions(Options, mode="prepare"):
    """Reads, filters and encodes the text of a run, without training.

    Examples:
      prepare --config=own_text:small
      prepare --config=wmt_en_de --config.data.workers=8

    Attributes:
      workdir: Directory of the run to prepare; runs/NAME of the configuration if not
        given.
    """


class PairOptions(ModelOptions):
    """Of the modes that compare a text with its translation.

    Attributes:
      source: Source sentences, one per line; plain text or .gz.
      reference: Reference translations, one per line; plain text or .gz.
    """

    source: str = flag(FILE, required=True)
    reference: str = flag(FILE, required=True)


class SearchOptions(
    LanguageOptions, ModelOptions, DistributedOptions, is_read_only=True
):
    """Of the modes that search for translations.

    Flags with a `key` have the value and the meaning of that key of `config`.

    Attributes:
      ensemble: More runs or models, DIR,DIR, whose probabilities are averaged with
        those of --workdir.
    """

    ensemble: tuple[str, ...] = flag(DIRECTORIES)
    beam_size: int = flag(key="decoding.beam_size")
    length_penalty: float = flag(key="decoding.length_penalty")
    length_normalization: str = flag(key="decoding.length_normalization")
    n_best: int = flag(key="decoding.n_best")
    mbr: str = flag(key="decoding.mbr")
    shortlist: str = flag(key="decoding.shortlist", metavar="FILE")
    segment: str = flag(key="decoding.segment")
    min_tokens: int = flag(key="decoding.min_tokens")
    max_extra_tokens: int = flag(key="decoding.max_extra_tokens")
    sample: bool = flag(key="decoding.sample")
    temperature: float = flag(key="decoding.temperature")
    top_k: int = flag(key="decoding.top_k")
    top_p: float = flag(key="decoding.top_p")
    sampling_seed: int = flag(key="decoding.seed")


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


class TranslateOptions(SearchOptions, LineOptions, mode="translate"):
    """Translates stdin (or --input) to stdout (or --output).

    Examples:
      translate --workdir=runs/mine --input=in.txt --output=out.txt
      translate --workdir=runs/mine --beam_size=8 --n_best=8 --format=jsonl
    """

    export: str = ""  # A flag of `distill` only.


class DistillOptions(TranslateOptions, mode="distill"):
    """Translates text with a large model, as training text of a smaller one.

    Examples:
      distill --workdir=runs/large --to=distilled --reverse=runs/de-en --drop_worst=5%
      distill --workdir=runs/de-en --to=back --sources=news.de.gz --sample

    Attributes:
      workdir: Directory of the teacher: a run, or an averaged or imported model.
      to: Directory of the pairs, created; the same command continues what is there.
      sources: Files to translate, one sentence per line; plain text or .gz. The sources
        of data.train if not given.
      export: Export of --workdir to CTranslate2, which translates in its place: on a
        CPU it is faster.
      reverse: Model of the other direction, which translates back: the closer to the
        source, by chrF, the better a pair. Its languages are the teacher's, exchanged.
      drop_worst: Leave out this share of the pairs, those of the lowest score, and with
        --reverse the same share of the lowest chrF.
      shards: Translate in this many parts; in parts of 1,000 lines if not given.
    """

    to: str = flag(DIRECTORY, required=True)
    sources: tuple[str, ...] = flag(FILES, metavar="FILE,FILE")
    export: str = flag(DIRECTORY)
    reverse: str = flag(DIRECTORY)
    drop_worst: float = flag(PERCENT)
    shards: int = flag(SHARDS)
    n_best: int = 1  # Not flags, from here on: they are the mode's own.
    input: str = ""
    output: str = ""
    format: str = "tsv"
    prefixes: str = ""
    terms: str = ""
    stream: bool = False
    strict: bool = False
    token_scores: bool = False
    alignments: bool = False
    resume: bool = True


_OF_FILES = (
    "source reference baseline protocol robustness source_language target_language"
)


class EvaluateOptions(SearchOptions, PairOptions, mode="evaluate"):
    """Scores translations of --source against --reference.

    Examples:
      evaluate --workdir=runs/mine --source=test.en --reference=test.de
      evaluate --workdir=runs/mine --source=a.en --reference=a.de --protocol=vaswani2017

    Attributes:
      source: Source sentences, one per line; plain text or .gz. With --protocol=parsing
        the words of the trees, if not given.
      reference: Reference translations, one per line; plain text or .gz. With
        --protocol=parsing gold trees in Penn brackets.
      corpus: Text to score on instead, such as "text:a.en,a.de#en-de,de-en": each
        direction that it names, and their mean.
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
      robustness: Also score the test set with its lines in lower, upper and title case,
        without final punctuation, with typing errors, with numbers and links, with
        emoji, and with doubled spaces; keep the scores for the page of the run.
      last: With --protocol: number of newest periodic checkpoints to average; if not
        given, checkpoint.keep with vaswani2017, and with the others none: --checkpoint
        is evaluated.
      force: Also average checkpoints that are not evenly spaced.
    """

    n_best: int = 1  # not a flag: the best is evaluated
    source: str = flag(FILE, required=True, unless="protocol=parsing corpus")
    reference: str = flag(FILE, required=True, unless="corpus")
    corpus: str = flag(metavar="SPEC", excludes=_OF_FILES)
    protocol: str = flag(metavar="NAME", choices=PROTOCOLS, excludes="ensemble")
    baseline: str = flag(FILE)
    hypotheses: str = flag(FILE)
    parameters: str = flag(FILE, metavar="FILE.prm", requires="protocol=parsing")
    tokenize: str = flag(key="evaluation.tokenize")
    lowercase: bool = flag(SWITCH, requires="protocol=tokenized")
    robustness: bool = flag(SWITCH, excludes="protocol")
    last: int = flag(COUNT, requires="protocol")
    force: bool = flag(SWITCH, requires="protocol")


class ScoreOptions(LanguageOptions, PairOptions, mode="score", is_read_only=True):
    """Prints the log-probability of each pair of --source and --reference.

    Examples:
      score --workdir=runs/mine --source=test.en --reference=test.de
      score --workdir=runs/mine --source=test.en --reference=test.de --format=jsonl

    Attributes:
      output: File for the results; - is stdout.
      format: Format of the results.
    """

    output: str = flag(FILE, default="-")
    format: str = flag(metavar="FORMAT", choices=("tsv", "jsonl"))


class AverageOptions(RunOptions, mode="average"):
    """Averages several checkpoints into the model directory --to.

    Examples:
      average --workdir=runs/mine --last=5 --to=runs/mine-average
      average --workdir=runs/mine --sliding --last=3

    Attributes:
      source: With --sliding: sentences to score on, instead of data.dev.
      reference: With --sliding: their reference translations.
      to: Directory to create for the averaged model.
      last: Number of newest periodic checkpoints to average; checkpoint.keep if not
        given.
      average_steps: Steps of the checkpoints to average instead, such as
        1000,2000,3000.
      force: Also average checkpoints that are not evenly spaced.
      trained: Average the parameters that are trained, where those that are evaluated
        are their moving average.
      sliding: Score the averages of all --last consecutive checkpoints instead of
        writing one.
    """

    source: str = flag(FILE, requires="reference sliding")
    reference: str = flag(FILE, requires="source sliding")
    to: str = flag(DIRECTORY, required=True, unless="sliding")
    last: int = flag(COUNT, excludes="average_steps")
    average_steps: tuple[int, ...] = flag(STEPS)
    force: bool = flag(SWITCH)
    trained: bool = flag(SWITCH)
    sliding: bool = flag(SWITCH, excludes="average_steps")


class ExportOptions(ModelOptions, mode="export"):
    """Exports the model for other software, as --format, into directory --to.

    Examples:
      export --workdir=runs/mine --format=model_dir --to=mine
      export --workdir=runs/mine --format=ctranslate2 --quantization=int8 --to=mine-ct2

    Attributes:
      source: Source sentences for the comparison with the exported model, instead of
        data.dev.
      reference: Their reference translations.
      format: Format of the exported model.
      to: Directory to create for the exported model; for --format=argos also a file,
        *.argosmodel.
      quantization: Number format of --format=ctranslate2 and argos; float32 if not
        given.
      max_bleu_loss: Largest accepted loss of BLEU by --format=ctranslate2 and argos; 1
        if not given, 0.5 for float16.
      languages: Codes of the source and the target language, such as en,de, for
        README.md; those in the names of the training files if not given.
      license: License of the model for README.md, an identifier of Hugging Face's hub
        such as apache-2.0.
      check_lines: Number of lines, of --source or else data.dev, for the comparison
        with the exported model.
    """

    source: str = flag(FILE, requires="reference")
    reference: str = flag(FILE, requires="source")
    format: str = flag(metavar="FORMAT", choices=EXPORT_FORMATS, required=True)
    to: str = flag(DIRECTORY, required=True)
    quantization: str = flag(metavar="TYPE", choices=QUANTIZATIONS, requires=_QUANTIZED)
    max_bleu_loss: float | None = flag(LOSS, requires=_QUANTIZED)
    languages: tuple[str, str] | None = flag(LANGUAGES)
    license: str = flag(LICENSE)
    shortlist: str = flag(
        key="decoding.shortlist", metavar="FILE", requires="format=ctranslate2"
    )
    check_lines: int = flag(COUNT, default="100")


class ImportOptions(Options, mode="import", reads_config=False):
    """Imports a model of another toolkit into the model directory --to.

    Examples:
      import --from=marian/model.npz --to=mine
      import --from=marian --format=marian --vocabularies=en.spm,de.spm --to=mine

    Attributes:
      from_: Model to import, a file or a directory; or hf://ORGANIZATION/NAME.
      to: Directory to create for the model.
      format: Toolkit of the model; found from its files if not given.
      vocabularies: With models of Marian, fairseq or tensor2tensor: vocabularies of
        source and target, or one for both; those beside the model if not given.
      positions: With models of Marian or Hugging Face: positions as this program
        computes them, to reproduce its outputs; those of the training if not given.
      normalize: With models of Hugging Face: normalize the punctuation of sources as
        Moses does, and as the training text of OPUS-MT was.
    """

    workdir: Workdir  # not a flag
    from_: str = flag(FILE, metavar="PATH", required=True)
    to: str = flag(DIRECTORY, required=True)
    format: str = flag(metavar="TOOLKIT", choices=IMPORT_FORMATS)
    vocabularies: tuple[str, ...] = flag(FILES, metavar="SOURCE,TARGET")
    positions: str = flag(metavar="KIND", choices=POSITIONS)
    normalize: bool = flag(SWITCH)


class ExtendOptions(ModelOptions, mode="extend"):
    """Adds a language to a model with tags, in the model directory --to.

    Examples:
      extend --workdir=imported --to=more --language=gsw --like=de --learn_from=a.gsw
      extend --workdir=imported --to=more --language=gsw --like=de

    Attributes:
      to: Directory to create for the model.
      language: Code of the new language, written as the model writes others.
      like: Code of the language as which it begins: a relative of it, if there is one.
      learn_from: Text of the new language, from which SentencePiece learns pieces.
      pieces: At most so many new pieces.
      keep: Text of other languages that must be split as before: pieces that would
        occur in it are left out.
    """

    to: str = flag(DIRECTORY, required=True)
    language: str = flag(metavar="CODE", required=True)
    like: str = flag(metavar="CODE", required=True)
    learn_from: tuple[str, ...] = flag(FILES)
    pieces: int = flag(COUNT, default="1000")
    keep: tuple[str, ...] = flag(FILES, requires="learn_from")


class ServeOptions(ModelOptions, mode="serve", is_read_only=True, reads_config=False):
    """Serves --workdir over HTTP: LibreTranslate's API, and a page.

    Examples:
      serve --workdir=runs/mine
      serve --workdir=en-de=runs/a,de-en=runs/b --port=8000

    Attributes:
      workdir: Directory of the run or model, with all its directions; or of several,
        with the languages of each or of all its own: en-de=DIR,de-en=DIR,DIR.
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


class RecoverOptions(RunOptions, mode="recover", reads_config=False):
    """Restores config.json and vocab.model of a run from a checkpoint.

    Examples:
      recover --workdir=runs/mine
      recover --workdir=/data/runs/mine
    """


class DescribeOptions(Options, mode="describe", is_read_only=True):
    """Shows a configuration, its size and its costs, without training.

    Examples:
      describe --config=table3:C_N2
      describe --config=wmt_en_de_big --devices=8 --peak_tflops=312 --format=json

    Attributes:
      workdir: Directory of a run to describe; the configuration alone if there is none.
      format: Format of the results.
      devices: Number of devices to describe; those of this machine or of the mesh if
        not given.
      topology: Devices that need not be here, to compile the step for and estimate its
        time: gpu:h100:8, gpu:h100:2x8 (hosts x GPUs), tpu:v5e:2x4 (chips).
      decode: With --topology: also compile the search.
      save_hlo: With --topology: file to write the compiled step to.
      peak_tflops: Peak of one device in model.compute_dtype, in TFLOP/s, to estimate
        hours; with --topology instead of its data sheet's.
      mfu: Fraction of --peak_tflops that training reaches (model FLOP utilization).
    """

    format: str = flag(metavar="FORMAT", choices=("text", "json"))
    devices: int = flag(COUNT, excludes="topology")
    topology: str = flag(metavar="TARGET")
    decode: bool = flag(SWITCH, requires="topology")
    save_hlo: str = flag(FILE, requires="topology")
    peak_tflops: float = flag(POSITIVE)
    mfu: float = flag(SHARE, default="0.4", requires="peak_tflops", excludes="topology")


class AttentionOptions(ModelOptions, mode="attention"):
    """Plots the attention weights for a --text into the directory --to.

    Examples:
      attention --workdir=runs/mine --text="A dog barks." --to=maps
      attention --workdir=runs/mine --text="A dog barks." --layer=0,1 --to=maps

    Attributes:
      to: Directory to create for the arrays and plots.
      text: Source sentence to translate and plot.
      target: Its translation; the model's own if not given.
      layer: Layers to plot, from 0, such as 0,5; or all.
      head: Heads to plot, from 0, such as 0,5; or all.
    """

    to: str = flag(DIRECTORY, required=True)
    text: str = flag(metavar="SENTENCE", required=True)
    target: str = flag(metavar="SENTENCE")
    layer: str = flag(default="all", metavar="LAYERS")
    head: str = flag(default="all", metavar="HEADS")


class ReportOptions(ModelOptions, mode="report"):
    """Writes a page about a run: curves, samples, attention, scores, data.

    Examples:
      report --workdir=runs/mine
      report --workdir=runs/mine --to=mine.html

    Attributes:
      to: HTML file to write; report.html in the run if not given.
    """

    to: str = flag(DIRECTORY, metavar="FILE")


class CompareOptions(
    LanguageOptions, Options, mode="compare", is_read_only=True, reads_config=False
):
    """Compares several runs; or the scores, speed and size of models on a test set.

    Examples:
      compare --workdirs=runs/a,runs/b,runs/c --to=comparison.html
      compare --workdirs=runs/large,runs/a,a-int8 --source=test.en --reference=test.de

    Attributes:
      workdirs: Directories of the runs, separated by commas; the others are compared
        with the first. With --source also models, and after one its exports as
        --format=ctranslate2.
      source: Sentences of a test set that each model translates, one per line.
      reference: Their reference translations.
      to: HTML file to write, beside the text on stdout.
    """

    workdir: Workdir  # not a flag
    workdirs: tuple[str, ...] = flag(DIRECTORIES, metavar="DIR,DIR", required=True)
    source_language: str = flag(metavar="CODE", requires="source")
    target_language: str = flag(metavar="CODE", requires="source")
    source: str = flag(FILE, requires="reference")
    reference: str = flag(FILE, requires="source")
    to: str = flag(DIRECTORY, metavar="FILE", excludes="source")


class ShowBatchOptions(RunOptions, mode="show_batch"):
    """Prints the text of the batch of a training --step.

    Examples:
      show_batch --workdir=runs/mine --step=1
      show_batch --workdir=runs/mine --step=4000

    Attributes:
      step: Training step whose batch is printed, from 1.
    """

    step: int = flag(COUNT, metavar="STEP", required=True)


class FiguresOptions(Options, mode="figures", reads_config=False):
    """Plots equation 3 and the positional encoding into the directory --to.

    Examples:
      figures --to=figures
      figures --to=runs/figures

    Attributes:
      to: Directory to create for the plots.
    """

    workdir: Workdir  # not a flag
    to: str = flag(DIRECTORY, required=True)


class InspectDataOptions(ModelOptions, mode="inspect_data", is_read_only=True):
    """Ranks the text of a run by the model's loss, and finds odd pairs.

    Examples:
      inspect_data --workdir=runs/mine --to=pairs.tsv
      inspect_data --workdir=runs/mine --to=pairs.tsv --drop_worst=1%

    Attributes:
      to: File for the results: *.tsv for all pairs, *.html for a page of the worst; a
        summary on stdout alone if not given.
      split: Text to inspect.
      lines: Number of pairs to inspect, evenly spaced; all if not given.
      drop_worst: Also write the text without this share of its pairs, those of the
        highest loss, beside --to: *.kept.source.txt and *.kept.target.txt.
    """

    to: str = flag(DIRECTORY, metavar="FILE")
    split: str = flag(default="train", metavar="SPLIT", choices=("train", "dev"))
    lines: int = flag(COUNT, excludes="drop_worst")
    drop_worst: float = flag(PERCENT, requires="to")


class ShortlistOptions(RunOptions, mode="shortlist", is_read_only=True, uses_jax=False):
    """Makes the file of --shortlist, the target pieces that words may need.

    Examples:
      shortlist --workdir=runs/mine --to=shortlist.npz
      shortlist --workdir=imported --source=a.en --reference=a.de --to=shortlist.npz

    Attributes:
      source: Source sentences to learn from, instead of data.train.
      reference: Their translations.
      to: File to write.
      best: Most target pieces of each source piece, the most probable ones.
      frequent: Target pieces of every sentence, the most frequent ones.
      pairs: Learn from at most so many pairs, evenly spaced; each two pieces of a pair
        take 4 bytes of memory, and the computation 120 MB more.
    """

    source: str = flag(FILE, requires="reference")
    reference: str = flag(FILE, requires="source")
    to: str = flag(DIRECTORY, metavar="FILE", required=True)
    best: int = flag(CANDIDATES, default="100")
    frequent: int = flag(CANDIDATES, default="100")
    pairs: int = flag(COUNT, default="500000")


class StatusOptions(
    RunOptions, mode="status", is_read_only=True, reads_config=False, uses_jax=False
):
    """Shows where a run is, what holds it and when it will be done.

    Examples:
      status --workdir=runs/mine
      status --workdir=runs/mine --format=json

    Attributes:
      format: Format of the results.
    """

    format: str = flag(metavar="FORMAT", choices=("text", "json"))


class DoctorOptions(
    Options, mode="doctor", is_read_only=True, reads_config=False, uses_jax=False
):
    """Checks the machine and the installation, and what to do about problems.

    Examples:
      doctor
      doctor --workdir=/data/runs/mine --format=json

    Attributes:
      workdir: Directory whose disk is checked; it need not exist.
      format: Format of the results.
    """

    format: str = flag(metavar="FORMAT", choices=("text", "json"))


def takes_keys(mode: str) -> bool:
    """Returns whether a mode takes `--config.KEY=VALUE`, or a configuration."""
    options = OPTIONS[mode]
    return options.uses_jax and (
        options.reads_config or issubclass(options, RunOptions)
    )
