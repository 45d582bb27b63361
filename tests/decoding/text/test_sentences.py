"""Texts are cut into sentences and laid out again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_jax.decoding.text.sentences import lay_out
from t2t_jax.decoding.text.translation import Hypothesis, Translation


def translated(text):
    hypothesis = Hypothesis(
        text=text, score=0.0, log_probability=0.0, num_tokens=1, ended=True
    )
    return Translation(hypotheses=(hypothesis,))


def sentences(text):
    return [one.text for one in lay_out(text, split="sentences").sentences]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("It rains. We go.", ["It rains.", "We go."]),
        ("It rains.\n\nWe go", ["It rains.", "We go"]),
        ("Mr. Fox met Dr. Hare. They ate.", ["Mr. Fox met Dr. Hare.", "They ate."]),
        ("J. S. Bach wrote. Go!", ["J. S. Bach wrote.", "Go!"]),
        ("Am 3. Oktober regnet es. Ja.", ["Am 3. Oktober regnet es.", "Ja."]),
        ("Pi is 3.14. Yes.", ["Pi is 3.14.", "Yes."]),
        ("Wait… what? No… Never.", ["Wait… what?", "No…", "Never."]),
        ("He said: “Go.” She went.", ["He said: “Go.”", "She went."]),
        ("e.g. this one", ["e.g. this one"]),
        ("Das ist z. B. Wasser. Ja.", ["Das ist z. B. Wasser.", "Ja."]),
        ("你好。再见！", ["你好。", "再见！"]),
        ("Really?! Yes.", ["Really?!", "Yes."]),
        (" \n ", []),
        ("", []),
    ],
)
def test_sentences(text, wanted):
    assert sentences(text) == wanted


def test_lines_stay_whole_where_only_lines_are_split():
    layout = lay_out(" A b. C d.\r\nE.\u2028F.", split="lines")
    assert [one.text for one in layout.sentences] == ["A b. C d.", "E.", "F."]


@given(
    st.text(alphabet=' \t\n\r.!?…。"”)aB3\u2028\x85\ud800'),
    st.sampled_from(["sentences", "lines"]),
)
def test_nothing_of_a_text_is_lost_and_no_sentence_has_a_line_end(text, split):
    layout = lay_out(text, split=split)
    texts = [one.text for one in layout.sentences]
    assert layout.fill([translated(one) for one in texts]) == text
    for one in texts:
        assert one == one.strip() != ""
        assert len(one.splitlines()) == 1
