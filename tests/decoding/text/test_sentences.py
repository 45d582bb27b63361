"""Texts are cut into sentences and laid out again, and lines that are too long cut.

Seen to fail: where a run of marks is looked at from each of its marks (the line of full
stops takes minutes), with `groups(longest)` for `groups(most)` (uneven parts), without
the last loop of split_line (parts that do not fit), without `_skip_combining_marks`
(an accent by itself), and where a mark needs no white space behind it (3.14).
"""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_jax.decoding.text.sentences import lay_out, split_line
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


def words(texts):
    return [len(text.split()) for text in texts]


def characters(texts):
    return [len(re.sub(r"\s", "", text)) for text in texts]


def texts(line, longest, count=words):
    return [part.text for part in split_line(line, longest=longest, count=count)]


@pytest.mark.parametrize(
    ("count", "line", "longest", "expected"),
    [
        (words, "It rains. We stay at home.", 9, ["It rains. We stay at home."]),
        (words, "It rains. We stay at home.", 4, ["It rains.", "We stay at home."]),
        (words, 'He said: "No!" She left.', 3, ['He said: "No!"', "She left."]),
        (words, "One? Two! Three… Four.", 1, ["One?", "Two!", "Three…", "Four."]),
        # A sentence that is too long is cut at clauses, another is left whole.
        (words, "a b; c d, e f. g h i.", 4, ["a b; c d,", "e f.", "g h i."]),
        # No mark helps: white space, and as evenly as can be.
        (words, "a b c d e f g", 3, ["a b c", "d e f", "g"]),
        # Other scripts need no white space.
        (characters, "你好。再见！你好吗？", 6, ["你好。再见！", "你好吗？"]),
        (characters, "谢谢你，再见了。", 4, ["谢谢你，", "再见了。"]),
        (characters, "「好。」他说。", 4, ["「好。」", "他说。"]),
        (characters, "मैं गया। वह आई।", 7, ["मैं गया।", "वह आई।"]),
        (characters, "كيف حالك؟ جيد.", 9, ["كيف حالك؟", "جيد."]),
        (characters, "abcdefgh", 3, ["ab", "cde", "fgh"]),
        (characters, "e\u0301" * 3, 4, ["e\u0301" * 2, "e\u0301"]),
        (characters, "x👩\u200d👧ab", 4, ["x👩\u200d👧", "ab"]),
        (characters, "  \t ", 1, [""]),
    ],
)
def test_a_line_is_cut_where_it_hurts_least(count, line, longest, expected):
    assert texts(line, longest, count) == expected


def test_what_stood_between_parts_is_known():
    parts = split_line(" a.\t b. 你。好。 ", longest=2, count=characters)
    wanted = [("a.", ""), ("b.", " "), ("你。", " "), ("好。", "")]
    assert [(part.text, part.before) for part in parts] == wanted


@pytest.mark.parametrize("line", ["pi is 3.14 and 1,000 is not", "see x.org:80, or y"])
def test_marks_within_words_are_no_ends(line):
    assert " ".join(texts(line, 2)) == line


def test_parts_are_as_few_and_as_even_as_they_can_be():
    assert words(texts("the cat sat down. " * 13, 20)) == [20, 20, 12]  # of 52
    assert max(words(texts("word " * 101, 100))) == 51


LINES = st.text(
    st.sampled_from("ab .!?,;:—…。，'\")\t\u3000\u0301\u200d\u0964") | st.characters()
)


@settings(max_examples=200, deadline=None)
@given(LINES, st.integers(1, 9), st.booleans())
def test_nothing_but_white_space_is_lost_and_every_part_fits(line, longest, bent):
    def count(lines):
        # A line may have more subwords than its parts together.
        return [n + (n > 4 and bent) for n in characters(lines)]

    parts = split_line(line, longest=longest, count=count)
    assert "".join("".join(part.text.split()) for part in parts) == "".join(
        line.split()
    )
    assert all(part.text == part.text.strip() for part in parts)
    for part, size in zip(parts, count([part.text for part in parts]), strict=True):
        assert size <= longest or len(part.text) == 1
    # Put together again, runs of white space aside, it is the line.
    whole = "".join(part.before + part.text for part in parts)
    assert " ".join(whole.split()) == " ".join(line.split())


@pytest.mark.parametrize("unit", [".", "a", ". ", "The cat sat. ", "\u0301"])
def test_a_megabyte_is_cut_in_seconds(unit):
    line = unit * (1_000_000 // len(unit))
    calls = []

    def count(lines):
        calls.append(sum(map(len, lines)))
        return characters(lines)

    began = time.monotonic()
    parts = split_line(line, longest=1023, count=count)
    assert time.monotonic() - began < 30  # it is 1.5 s; what is quadratic is minutes
    assert max(characters([part.text for part in parts])) <= 1023
    assert sum(calls) <= 9 * len(line)
    assert len(calls) <= 20
