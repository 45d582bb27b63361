import pytest

from t2t_jax.cli.evaluation.tokens import target_language
from t2t_jax.errors import UserError
from t2t_jax.run.workdir import Workdir
from tests.run.test_text_facts import trained_on


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
    tmp_path, spec, reference, language
):
    run = Workdir(tmp_path)
    assert target_language(run, trained_on(spec), reference=reference) == language


@pytest.mark.parametrize(
    ("spec", "reference"),
    [
        ("text:s.en,s.de", "test.fr"),
        ("text:a.en,a.de++text:b.en,b.fr", "reference"),
        ("text:a.en,a.de++text:b.en,b.fr", "test.it"),
        ("tsv:pairs.tsv", "reference.txt"),
    ],
)
def test_a_language_that_is_not_known_is_asked_for(tmp_path, spec, reference):
    with pytest.raises(UserError, match="Pass --target_language=CODE"):
        target_language(Workdir(tmp_path), trained_on(spec), reference=reference)
