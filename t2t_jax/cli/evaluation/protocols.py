"""`--mode=evaluate --protocol=…`: as the paper does (§6.1), on tokens, or of trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TextIO, TypeAlias

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.console.tables import interval_note, show_rows
from t2t_jax.cli.evaluation.corpus import (
    Corpus,
    protocol_record,
    read_corpus,
    translate_corpus,
)
from t2t_jax.cli.flags.options import PARSING, TOKENIZED, EvaluateOptions
from t2t_jax.cli.translation.formats import require_parser
from t2t_jax.data.corpora.tree_files import read_trees
from t2t_jax.data.files.lines import read_lines
from t2t_jax.data.trees.linearization import read_parse
from t2t_jax.data.trees.tree import Tree
from t2t_jax.data.vocabulary.tokenizers import short_code
from t2t_jax.errors import DataError, ErrorCollector, UserError
from t2t_jax.run.text import language_of_file, languages_of

_NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
_BETTER = {"system": "this model", "baseline": "the baseline"}
_HASH_DIGITS = 12
_PAPER_AVERAGES = (5, 20)

Row: TypeAlias = tuple[str, str, str]
"""Name, rounded value and note."""


def evaluate_tokens(options: EvaluateOptions) -> dict[str, Any]:
    """Evaluates as the paper does (§6.1), or on tokens with the run's own search.

    Raises:
      UserError: a file, flag or package is missing or invalid, or the language.
    """
    from t2t_jax.evaluation.bleu import METRICS, BleuSettings
    from t2t_jax.evaluation.significance import scores_and_tests
    from t2t_jax.evaluation.tokenized_bleu import (
        moses_tokenizer,
        paper_bleu,
        tokenized_bleu,
    )

    errors, is_tokenized = ErrorCollector(), options.tokenize == "none"
    language = short_code(options.target_language)
    if not (language or is_tokenized):
        language = errors.try_call(target_language, options)
    # Text that is not tokenized again needs no tokenizer.
    tokenize: Any = str
    if not is_tokenized:
        tokenize = errors.try_call(moses_tokenizer, language)
    corpus = errors.try_call(read_corpus, options)
    errors.raise_if_any()
    warn_of_tokenization(options, corpus.references)
    translated = translate_corpus(options, corpus)
    both, baseline = (translated.hypotheses, corpus.references), corpus.baseline
    tokens: dict[str, Any] = {"tokenize": tokenize, "language": language}
    scores = scores_and_tests(
        *both, metrics=METRICS, baseline=baseline, bleu=BleuSettings(options.tokenize)
    )
    if options.protocol == TOKENIZED:
        tokens |= {"lowercase": options.lowercase, "baseline": baseline}
        scores["tokenized_bleu"] = tokenized_bleu(*both, **tokens)
    else:
        scores["paper_bleu"] = paper_bleu(*both, **tokens)
    return {
        "protocol": options.protocol,
        **scores,
        "target_language": language or None,
        "is_tokenized": is_tokenized,
        "sentences": len(corpus.references),
        **protocol_record(options, translated, corpus, translated.hypotheses),
    }


def target_language(options: EvaluateOptions) -> str:
    """Returns the language of `--reference`, in two letters where there are.

    It is the target language of the run; of several, or of none, the one that the
    file's name ends in.

    Raises:
      UserError: it is not known, or run and file name different ones.
    """
    workdir, reference = options.workdir, options.reference
    own = {target for _, target in languages_of(workdir, options.config)}
    named = language_of_file(reference)
    found = own if len(own) == 1 and named in ("", *own) else {named} & (own or {named})
    if any(found):
        return short_code(found.pop())
    known = f"of {workdir.path} it is {' or '.join(sorted(own))}" if own else ""
    by_name = f"of --reference={reference} by its name {named}" if named else ""
    problem = ", ".join(filter(None, [known, by_name])) or "no file names it"
    raise UserError(
        "The target language determines how Moses tokenizes, and is not known: "
        f"{problem}. Pass --target_language=CODE, such as de."
    )


def warn_of_tokenization(options: EvaluateOptions, references: Sequence[str]) -> None:
    """Logs a warning if the references do not look as `options.tokenize` has them."""
    from t2t_jax.evaluation.tokenized_bleu import share_of_tokenized

    share, is_tokenized = share_of_tokenized(references), options.tokenize == "none"
    if share is None or (share >= 0.5) == is_tokenized:
        return
    looks = "raw. With --tokenize=none it must be tokenized. Pass a file that is."
    if not is_tokenized:
        looks = "tokenized. If it is, pass --tokenize=none; it is not tokenized again."
    log(f"warning: --reference={options.reference} looks {looks}")


def evaluate_trees(options: EvaluateOptions) -> dict[str, Any]:
    """Evaluates a parser with the run's own search, by EVALB's rules (§6.3).

    Raises:
      UserError: a file is missing or faulty, the sentences of `source` are others than
        the trees', the model is not a parser, or a flag has no effect on trees.
    """
    from t2t_jax.evaluation.bracketing.parameters import load_parameters
    from t2t_jax.evaluation.bracketing.parses import parsing_scores

    if options.baseline:
        raise UserError(
            "--baseline has no effect with --protocol=parsing. Leave it out, and score "
            "the other trees with python -m t2t_jax.evaluation.bracketing."
        )
    errors, spec = ErrorCollector(), options.config.data.train
    errors.try_call(require_parser, spec, flag="--protocol=parsing")
    parameters = errors.try_call(load_parameters, options.parameters or "standard")
    trees = errors.try_call(read_trees, options.reference)
    errors.raise_if_any()
    if options.source:
        _check_sources(list(read_lines(options.source)), trees, options)
    sources = [" ".join(tree.words()) for tree in trees]

    def trees_of(lines: Sequence[str]) -> list[str]:
        return [str(parse.tree) for parse in map(read_parse, sources, lines)]

    corpus = Corpus(sources, [str(tree) for tree in trees], None)
    translated = translate_corpus(options, corpus, shown=trees_of)
    parses = list(map(read_parse, sources, translated.hypotheses))
    lines = [str(parse.tree) for parse in parses]
    return {
        "protocol": options.protocol,
        "parameters": options.parameters or "standard",
        **parsing_scores(trees, parses, parameters),
        **protocol_record(options, translated, corpus, lines),
    }


def _check_sources(
    lines: Sequence[str], trees: Sequence[Tree], options: EvaluateOptions
) -> None:
    """Checks that the lines of `--source` are the words of the trees."""
    source, reference = options.source, options.reference
    for number, (line, tree) in enumerate(zip_longest(lines, trees), start=1):
        words = tree.words() if tree else None
        if line is None or line.split() != words:
            shown = f"{line and line[:60]!r} and {words and ' '.join(words)[:60]!r}"
            raise DataError(
                f"--source={source} and --reference={reference} have {len(lines):,} "
                f"lines and {len(trees):,} trees, and differ in sentence {number:,}: "
                f"{shown}. Leave --source out to parse the words of the trees."
            )


def show_scores(result: Mapping[str, Any], *, file: TextIO) -> None:
    """Writes the scores of `--mode=evaluate`: a table, then BLEU and chrF.

    Args:
      result: as the mode prints it; without a protocol the table is a paired test.
    """
    if result.get("protocol") == PARSING:
        return show_rows([*_tree_scores(result), *_facts(result)], file=file)
    rows = [*_directions(result), *_comparison(result)]
    if "intervals" in result:
        rows = [*_scores(result), *rows]
    if "protocol" in result:
        rows += _facts(result)
    show_rows(rows, file=file)
    for key in ("bleu", "chrf"):
        signature = result[f"{key}_signature"]
        print(f"{_NAMES[key]} = {result[key]:.1f} ({signature})", file=file)
    if tokens := result.get("tokenized_bleu"):
        note = f"{tokens['signature']}; {tokens['label']}"
        print(f"BLEU of tokens = {tokens['score']:.2f} ({note})", file=file)


def _directions(result: Mapping[str, Any]) -> Iterator[Row]:
    """Yields the scores of each direction; their means come below."""
    for direction, bleu in result.get("bleu_by_direction", {}).items():
        chrf = result["chrf_by_direction"][direction]
        yield direction, f"{bleu:.2f}", f"BLEU, and {chrf:.2f} chrF"


def _scores(result: Mapping[str, Any]) -> Iterator[Row]:
    intervals = result["intervals"]
    for key in filter(intervals.get, _NAMES):
        note = interval_note(intervals[key], intervals["level"])
        if "protocol" in result:  # Else the last lines have it.
            note += f"  {result[f'{key}_signature']}"
        yield (_NAMES[key], f"{result[key]:.2f}", note)
    for key in ("paper_bleu", "tokenized_bleu"):
        if tokens := result.get(key):
            note = f"{tokens['label']}  {tokens['signature']}"
            if interval := tokens.get("interval"):
                note = f"{interval_note(interval, intervals['level'])}  {note}"
            yield ("BLEU of tokens", f"{tokens['score']:.2f}", note)


def _tree_scores(result: Mapping[str, Any]) -> Iterator[Row]:
    """Yields the scores of trees, of all lengths and short ones."""
    short = result["short"]
    for part, which in ((result, "all"), (short, f"up to {short['longest']} words")):
        level = part["intervals"]["level"]
        yield ("sentences", f"{part['sentences']:,}", which)
        for key in ("f1", "precision", "recall", "complete_match"):
            name = "F1" if key == "f1" else f"  {key.replace('_', ' ')}"
            interval = part["intervals"][key]
            note = "" if interval is None else interval_note(interval, level)
            yield (name, f"{part[key]:.2f}", note)
        yield ("  average crossing", f"{part['average_crossing']:.2f}", "")
        if (tagging := part["tagging_accuracy"]) is not None:
            yield ("  tagging accuracy", f"{tagging:.2f}", "of the model's own tags")
        note = "outputs that were not a tree over the sentence"
        yield ("  repaired", f"{part['repaired']:,}", note)


def _comparison(result: Mapping[str, Any]) -> Iterator[Row]:
    """Yields the scores of the baseline, and which is better."""
    test = result.get("paired_test", {})
    found = {name: test[key] for key, name in _NAMES.items() if key in test}
    if tokens := result.get("tokenized_bleu", {}).get("paired_test"):
        found["BLEU of tokens"] = tokens
    for name, scores in found.items():
        better, p_value = _BETTER.get(scores["better"], "neither"), scores["p_value"]
        suffix = "" if p_value is None else f", p = {p_value:.4f} ({test['test']})"
        baseline = f"{scores['baseline']:.2f}"
        yield f"baseline's {name}", baseline, f"better: {better}{suffix}"


def _facts(result: Mapping[str, Any]) -> Iterator[Row]:
    """Yields what made the scores: model, vocabularies, search and files."""
    if language := result.get("target_language"):
        yield ("target language", language, "of Moses's tokenizer")
    steps, step = result["averaged_steps"], f"step {result['checkpoint_step']:,}"
    mean = f"mean of {', '.join(f'{step:,}' for step in steps)}  " * bool(steps)
    yield ("model", step, f"{mean}sha256 {_short(result['params_sha256'])}")
    if result["averaged_spacing"].get("forced"):
        yield ("  averaged", f"{len(steps)}", "forced: not evenly spaced and periodic")
    if "paper_bleu" in result and len(steps) not in _PAPER_AVERAGES:
        yield ("  averaged", f"{len(steps)}", "the paper averages 5, of big models 20")
    hashes = result["vocabulary_sha256"]
    if len(set(hashes.values())) == 1:
        yield ("vocabulary", "shared", f"sha256 {_short(hashes['target'])}")
    else:
        for side, digest in hashes.items():
            yield (f"{side} vocabulary", "", f"sha256 {_short(digest)}")
    used, seconds = result["decoding"], result["seconds"]
    alpha, extra = used["length_penalty"], used["max_extra_tokens"]
    note = f"alpha {alpha:g}, output up to source + {extra}, {seconds:.1f} s"
    yield ("search", f"beam {used['beam_size']}", note)
    for name, values in result["overruled"].items():
        note = f"the protocol overrides {values['asked']}"
        yield (f"  {name}", str(values["used"]), note)
    for name, file in result["files"].items():
        note = f"{file['path'] or '(not kept)'}  sha256 {_short(file['sha256'])}"
        yield (name, f"{file['lines']:,} lines", note)


def _short(digest: str) -> str:
    return f"{digest[:_HASH_DIGITS]}…"
