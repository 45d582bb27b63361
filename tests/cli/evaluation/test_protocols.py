"""What a protocol asks for, refuses and prints."""

import dataclasses
import io

import pytest

from t2t_jax.cli.evaluation.protocols import show_scores, target_language
from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.errors import UserError
from tests.run.test_text import trained_on


def language_of(spec, reference):
    """Returns the target language of a run that was trained on a text."""
    argv = ["--mode=evaluate", "--workdir=run", "--source=s", "--reference=r"]
    options = parse_argv(argv)
    return target_language(
        dataclasses.replace(options, config=trained_on(spec), reference=reference)
    )


@pytest.mark.parametrize(
    ("spec", "reference", "language"),
    [
        ("text:s.en,s.fr", "anything", "fr"),
        ("text:s.en,s.fr", "test.fr.gz", "fr"),
        ("text:s.en,s.pt_BR", "reference.txt", "pt"),
        ("text:a.en,a.de++text:b.en,b.fr", "test.2016.fr", "fr"),
        ("tsv:pairs.tsv", "x/dev.tok.de.gz", "de"),
    ],
)
def test_the_target_language_is_the_run_s_or_the_reference_s(
    place, spec, reference, language
):
    assert language_of(spec, reference) == language


@pytest.mark.parametrize(
    ("spec", "reference"),
    [
        ("text:s.en,s.de", "test.fr"),
        ("text:a.en,a.de++text:b.en,b.fr", "reference"),
        ("text:a.en,a.de++text:b.en,b.fr", "test.it"),
        ("tsv:pairs.tsv", "reference.txt"),
    ],
)
def test_a_language_that_is_not_known_is_asked_for(place, spec, reference):
    with pytest.raises(UserError, match="Pass --target_language=CODE"):
        language_of(spec, reference)


RESULT = {
    "protocol": "vaswani2017",
    "bleu": 27.304,
    "bleu_signature": "tok:13a",
    "chrf": 55.559,
    "chrf_signature": "nc:6",
    "ter": 61.001,
    "ter_signature": "tok:tercom",
    "intervals": {
        "level": 0.95,
        "resamples": 1000,
        "seed": 12345,
        "bleu": {"mean": 27.0, "half_width": 1.25},
        "chrf": {"mean": 55.5, "half_width": 0.5},
        "ter": {"mean": 61.0, "half_width": 2.0},
    },
    "paper_bleu": {"score": 28.4, "signature": "tok:none", "label": "another kind"},
    "paired_test": {
        "test": "paired bootstrap",
        "bleu": {"system": 27.3, "baseline": 26.4, "better": "system", "p_value": 0.01},
        "chrf": {
            "system": 55.5,
            "baseline": 55.6,
            "better": "baseline",
            "p_value": 0.4,
        },
        "ter": {"system": 61.0, "baseline": 61.0, "better": "neither", "p_value": None},
    },
    "checkpoint_step": 1300,
    "averaged_steps": [1100, 1200, 1300],
    "averaged_spacing": {"unit": "steps", "gaps": [100, 100], "forced": False},
    "params_sha256": "0123456789abcdef",
    "vocabulary_sha256": {"source": "a" * 64, "target": "a" * 64},
    "decoding": {"beam_size": 4, "length_penalty": 0.6, "max_extra_tokens": 50},
    "overruled": {"beam_size": {"asked": 9, "used": 4}},
    "seconds": 12.34,
    "files": {
        "source": {"path": "a.en", "lines": 3003, "sha256": "c" * 64},
        "hypotheses": {"path": None, "lines": 3003, "sha256": "d" * 64},
    },
}


def shown(result):
    file = io.StringIO()
    show_scores(result, file=file)
    return file.getvalue()


def test_the_table_is_as_drawn():
    assert (
        shown(RESULT)
        == """\
BLEU             27.30        95 %: 25.75 to 28.25  tok:13a
chrF             55.56        95 %: 55.00 to 56.00  nc:6
TER              61.00        95 %: 59.00 to 63.00  tok:tercom
BLEU of tokens   28.40        another kind  tok:none
baseline's BLEU  26.40        better: this model, p = 0.0100 (paired bootstrap)
baseline's chrF  55.60        better: the baseline, p = 0.4000 (paired bootstrap)
baseline's TER   61.00        better: neither
model            step 1,300   mean of 1,100, 1,200, 1,300  sha256 0123456789ab…
  averaged       3            the paper averages 5, of big models 20
vocabulary       shared       sha256 aaaaaaaaaaaa…
search           beam 4       alpha 0.6, output up to source + 50, 12.3 s
  beam_size      4            the protocol overrides 9
source           3,003 lines  a.en  sha256 cccccccccccc…
hypotheses       3,003 lines  (not kept)  sha256 dddddddddddd…
BLEU = 27.3 (tok:13a)
chrF = 55.6 (nc:6)
"""
    )
