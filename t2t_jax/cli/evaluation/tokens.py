"""`--mode=evaluate --protocol=…` of text: as the paper does (§6.1), or on tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.evaluation.corpus import (
    protocol_record,
    read_corpus,
    translate_corpus,
)
from t2t_jax.cli.flags.translation import TOKENIZED, EvaluateOptions
from t2t_jax.cli.processes.shared_model import require_run_for_last
from t2t_jax.config import Config
from t2t_jax.errors import ErrorCollector, UserError
from t2t_jax.run.text_facts import language_of_file, languages_of
from t2t_jax.run.workdir import Workdir


def evaluate_tokens(options: EvaluateOptions) -> dict[str, Any]:
    """Evaluates as the paper does (§6.1), or on tokens with the run's own search.

    Raises:
      UserError: a file, flag or package is missing or invalid, or the language.
    """
    from t2t_jax.evaluation import protocol
    from t2t_jax.evaluation.bleu import BleuSettings

    require_run_for_last(options)
    errors = ErrorCollector()
    language = errors.try_call(_language, options)
    tokenize = errors.try_call(_tokenizer, options, language=language)
    corpus = errors.try_call(read_corpus, options)
    errors.raise_if_any()
    warn_of_tokenization(options, corpus.references)
    translated = translate_corpus(options, corpus)
    settings: dict[str, Any] = {
        "tokenize": tokenize,
        "language": language,
        "baseline": corpus.baseline,
        "bleu": BleuSettings(options.tokenize),
    }
    scores = protocol.protocol_scores
    if options.protocol == TOKENIZED:
        scores = protocol.tokenized_scores
        settings["lowercase"] = options.lowercase
    return {
        "protocol": options.protocol,
        **scores(translated.hypotheses, corpus.references, **settings),
        "target_language": language or None,
        "is_tokenized": options.tokenize == "none",
        "sentences": len(corpus.references),
        **protocol_record(options, translated, corpus, translated.hypotheses),
    }


def _language(options: EvaluateOptions) -> str:
    """Returns the target language; "" for text that is not tokenised again."""
    if options.target_language or options.tokenize == "none":
        return options.target_language
    return target_language(options.workdir, options.config, reference=options.reference)


def target_language(workdir: Workdir, config: Config, *, reference: str) -> str:
    """Returns the language of a reference file, without its region.

    It is the target language of the run; of several, or of none, the one that the
    file's name ends in.

    Raises:
      UserError: it is not known, or run and file name different ones.
    """
    own = {target for _, target in languages_of(workdir, config)}
    named = language_of_file(reference)
    found = own if len(own) == 1 and named in ("", *own) else {named} & (own or {named})
    if any(found):
        return re.split("[_-]", found.pop())[0]
    known = f"of {workdir.path} it is {' or '.join(sorted(own))}" if own else ""
    by_name = f"of --reference={reference} by its name {named}" if named else ""
    problem = ", ".join(filter(None, [known, by_name])) or "no file names it"
    raise UserError(
        "The target language determines how Moses tokenizes, and is not known: "
        f"{problem}. Pass --target_language=CODE, such as de."
    )


def _tokenizer(
    options: EvaluateOptions, *, language: str | None
) -> Callable[[str], str]:
    """Returns Moses's tokenizer, or for tokenised text what leaves a line as it is."""
    from t2t_jax.evaluation.tokenized_bleu import moses_tokenizer

    if options.tokenize == "none":
        return str
    # Without a language that error is reported alone.
    return str if language is None else moses_tokenizer(language)


def warn_of_tokenization(options: EvaluateOptions, references: Sequence[str]) -> None:
    """Logs a warning if the references do not look as `options.tokenize` has them."""
    from t2t_jax.evaluation.tokenized_bleu import share_of_tokenized

    share, is_tokenized = share_of_tokenized(references), options.tokenize == "none"
    if share is None or (share >= 0.5) == is_tokenized:
        return
    looks = "tokenized"
    advice = "If it is, pass --tokenize=none, and it is not tokenized again."
    if is_tokenized:
        looks = "raw"
        advice = "With --tokenize=none it must be tokenized. Pass a file that is."
    log(f"warning: --reference={options.reference} looks {looks}. {advice}")
