import pytest
import sacrebleu

from t2t_jax.errors import DataError
from t2t_jax.evaluation.bleu import IN_TRAINING, METRICS, BleuSettings, corpus_scores
from t2t_jax.evaluation.config import TOKENIZERS

REFERENCES = [
    "Der alte Mann, der am Fenster sitzt, liest eine Zeitung.",
    "Sie kauft 3,5 kg Äpfel für 12 Euro.",
    "Warum hast du mich gestern nicht angerufen?",
]
HYPOTHESES = [
    "Der alte Mann am Fenster liest eine Zeitung.",
    "Sie kauft 3,5 kg Äpfel für 11 Euro.",
    "warum riefst du mich gestern nicht an?",
]


def test_the_scores_are_the_library_s_own_on_the_same_lines():
    scores = corpus_scores(HYPOTHESES, REFERENCES)
    assert scores["bleu"] == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert scores["chrf"] == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert 0 < scores["bleu"] < 100


def test_ter_is_scored_where_it_is_asked_for_and_never_in_training():
    scores = corpus_scores(HYPOTHESES, REFERENCES, metrics=METRICS)
    assert scores["ter"] == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score > 0
    assert "tok:tercom" in scores["ter_signature"]
    assert "ter" not in IN_TRAINING
    assert not any("ter" in name for name in corpus_scores(HYPOTHESES, REFERENCES))


@pytest.mark.parametrize(
    ("hypotheses", "references", "came"),
    [(["a"], ["a", "b"], "1 and 2"), (["a"], [], "1 and 0"), ([], [], "0 and 0")],
)
def test_unequal_or_no_lines_are_refused(hypotheses, references, came):
    with pytest.raises(DataError, match=came):
        corpus_scores(hypotheses, references)


@pytest.mark.parametrize("tokenize", TOKENIZERS)
def test_every_tokenizer_is_sacrebleu_s_and_in_the_signature(tokenize):
    scores = corpus_scores(HYPOTHESES, REFERENCES, bleu=BleuSettings(tokenize))
    wanted = sacrebleu.corpus_bleu(
        HYPOTHESES, [REFERENCES], tokenize=tokenize, force=True
    )
    assert scores["bleu"] == wanted.score > 0
    assert f"|tok:{tokenize}|" in scores["bleu_signature"]
    assert scores["chrf"] == corpus_scores(HYPOTHESES, REFERENCES)["chrf"]
