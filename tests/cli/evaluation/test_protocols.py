"""What a protocol asks for and refuses."""

import dataclasses

import pytest

from t2t_jax.cli.evaluation.protocols import target_language
from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.errors import UserError
from tests.run.test_text import trained_on

BOTH = "text:a.en,a.de++text:b.en,b.fr"


@pytest.mark.parametrize(
    ("spec", "reference", "language"),
    [
        ("text:s.en,s.fr", "anything", "fr"),
        ("text:s.en,s.fr", "test.fr.gz", "fr"),
        ("text:s.en,s.pt_BR", "reference.txt", "pt"),
        ("text:s.en,s.deu_Latn", "reference.txt", "de"),
        (BOTH, "test.2016.fr", "fr"),
        ("tsv:pairs.tsv", "x/dev.tok.de.gz", "de"),
        ("text:s.en,s.de", "test.fr", None),
        (BOTH, "reference", None),
        (BOTH, "test.it", None),
        ("tsv:pairs.tsv", "reference.txt", None),
    ],
)
def test_the_target_language_is_the_run_s_or_the_reference_s_or_asked_for(
    place, spec, reference, language
):
    argv = ["--mode=evaluate", "--workdir=run", "--source=s", "--reference=r"]
    run = {"config": trained_on(spec), "reference": reference}
    options = dataclasses.replace(parse_argv(argv), **run)
    if language:
        assert target_language(options) == language
    else:
        with pytest.raises(UserError, match="Pass --target_language=CODE"):
            target_language(options)
