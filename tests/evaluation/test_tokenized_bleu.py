import sys

import pytest
import sacrebleu

from t2t_jax.data.files.lines import read_lines
from t2t_jax.errors import UserError
from t2t_jax.evaluation.bleu import BleuSettings
from t2t_jax.evaluation.significance import bootstrap_intervals, paired_test
from t2t_jax.evaluation.tokenized_bleu import (
    LABEL,
    moses_tokenizer,
    share_of_tokenized,
    tokenized_bleu,
)
from tests.evaluation.test_significance import GOOD, POOR, REFERENCES
from tests.exchange.real_models import real_file

TOKENIZED = ["ein &quot; test &quot; .", "er hat &apos;s nicht gesehen , nie ."]


def test_moses_tokenises_as_its_rules_say():
    pytest.importorskip("sacremoses", reason="the extra `paper` is not installed")
    tokenize = moses_tokenizer("de")
    assert tokenize("Er sagt: „Ja“, z.B. um 3,5 km.") == (
        "Er sagt : „ Ja “ , z.B. um 3,5 km ."
    )
    # Hyphens stay where they are: compounds are split afterwards.
    assert tokenize("Ein T-Shirt & mehr") == "Ein T-Shirt &amp; mehr"
    assert moses_tokenizer("fr")("l'homme") == "l&apos; homme"
    assert moses_tokenizer("en")("don't") == "don &apos;t"


def test_lower_case_comes_before_tokens_and_on_both_sides():
    seen = []
    ours, theirs = ["Ein B c d ."], ["ein b C d ."]
    found = tokenized_bleu(
        ours, theirs, tokenize=lambda line: seen.append(line) or line, lowercase=True
    )
    assert seen == ["ein b c d ."] * 2
    assert found["score"] == pytest.approx(100)
    assert "case:lc|eff:no|tok:none" in found["signature"]
    as_it_is = tokenized_bleu(ours, theirs, tokenize=str)
    assert as_it_is["score"] < 50
    assert "case:mixed|eff:no|tok:none" in as_it_is["signature"]


def test_the_score_is_sacrebleu_s_of_the_tokens_with_interval_and_test():
    found = tokenized_bleu(GOOD, REFERENCES, tokenize=str, baseline=POOR)
    wanted = sacrebleu.corpus_bleu(GOOD, [REFERENCES], tokenize="none", force=True)
    assert found["score"] == wanted.score
    how = {"metrics": ["bleu"], "bleu": BleuSettings("none")}
    assert found["interval"] == bootstrap_intervals(GOOD, REFERENCES, **how)["bleu"]
    tests = paired_test(GOOD, REFERENCES, baseline=POOR, **how)
    assert found["paired_test"] == tests["bleu"]
    assert found["paired_test"]["better"] == "system"
    assert found["label"] == LABEL
    assert "not comparable with sacreBLEU" in LABEL


def test_escapes_of_tokenised_text_are_the_same_tokens_on_both_sides():
    assert tokenized_bleu(TOKENIZED, TOKENIZED, tokenize=str)["score"] > 99.9
    plain = [line.replace("&apos;", "'") for line in TOKENIZED]
    assert tokenized_bleu(plain, TOKENIZED, tokenize=str)["score"] < 90


@pytest.mark.parametrize(
    ("lines", "share"),
    [
        (["Ein Hund.", "Wer?", "Niemand!"], 0.0),
        (["ein hund .", "wer ?", "niemand !"], 1.0),
        (["ein hund . ", "wer?"], 0.5),
        ([], None),
    ],
)
def test_ends_of_sentences_show_whether_text_is_tokenised(lines, share):
    assert share_of_tokenized(lines) == share


def test_lower_cased_tokens_of_the_raw_test_are_the_published_reference():
    pytest.importorskip("sacremoses", reason="the extra `paper` is not installed")
    raw = [*read_lines(real_file("multi30k/test_2016_flickr.de.gz"))]
    name = "multi30k_bpe/test_2016_flickr.lc.norm.tok.de.gz"
    published, tokenize = [*read_lines(real_file(name))], moses_tokenizer("de")
    assert [tokenize(line.lower()) for line in raw] == published
    # Were case not lowered first, the abbreviations of German would keep a full stop.
    assert [tokenize(line).lower() for line in raw] != published


def test_what_sacremoses_needs_is_named_where_it_is_missing(tmp_path, monkeypatch):
    (tmp_path / "sacremoses.py").write_text("import joblib_of_sacremoses")
    monkeypatch.delitem(sys.modules, "sacremoses", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match="No module named 'joblib_of_sacremoses'"):
        moses_tokenizer("de")
