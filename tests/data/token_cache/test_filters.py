"""Each filter by name drops its own pairs, and no other."""

import math
import re
from random import Random

import numpy as np
import pytest

from t2t_jax.data.batching.modifiers import modify
from t2t_jax.data.config import FILTERS, MODIFIERS, SIDES, DataConfig
from t2t_jax.data.token_cache.filters import (
    KEPT,
    PLACEHOLDER,
    REASONS,
    URL,
    DuplicateFilter,
    mark_filtered,
    pair_hashes,
    text_hashes,
    trigrams_of,
)
from t2t_jax.errors import ConfigError

OF_A_PAIR = FILTERS[:8]  # others need the whole text
ALL = ",".join((*OF_A_PAIR[:-1], "script:latin-hangul"))
DROPPED = {
    "digits": [("at 9", "아홉 시 반"), ("in 2020", "올해는 202")],
    "urls": [("see https://a.org/b.", "이것을 보세요 https://a.org/c.")],
    "placeholders": [("no %s", "없음 %d"), ("is {x}", "이다"), ("<b>so</b>", "그래")]
    + [(text, "그래그래") for text in ("is %(a)s", "is %lx", "a %(b)d", "R&amp;D")],
    "brackets": [("a (b)", "가 나"), ("[1]", "（1）")],
    "capitals": [("Ein Haus", "maison"), ("SO NOT", "Так нет")],
    "punctuation": [("Who?", "누구."), ("Yes.", "네"), ("Ποιος;", "누구.")],
    "letters": [("a ---- b", "가 나 다 라")],
    "script": [("yes", "yes"), ("네", "네")],
}
KEPT_PAIRS = [
    ("Yes (NO).", "그래（아니）!"),
    ("On 3 May 2,020 he said: “no!”", "그는 2.020년 3월에 아니라고 말했다."),
    ("%s is at <b>a@b.de</b>", "주소는 이것이다 <b>a@b.de</b> 그리고 이름은 바로 %s"),
    ("100%ig or AT&T; 5 % so", "백퍼센트 100 또는 에이티 5 그렇게"),
    (
        "See https://a.org/b.",
        "다음 주소를 보시면 모두 잘 알 수 있습니다 https://a.org/b.",
    ),
]


@pytest.mark.parametrize("name", OF_A_PAIR)
def test_a_filter_drops_its_own_pairs_alone_and_among_all(name):
    pairs = [*DROPPED[name], *KEPT_PAIRS]
    sides = [*zip(*pairs, strict=True)]
    own = [name] * len(DROPPED[name]) + [None] * len(KEPT_PAIRS)
    alone = next(one for one in ALL.split(",") if one.startswith(name))
    for filters in (alone, ALL):
        reasons = np.full(len(pairs), KEPT, np.int8)
        config = DataConfig(filters=filters)
        found = mark_filtered(reasons, *sides, config=config)
        assert [*map([*REASONS, None].__getitem__, found)] == own
    reasons[:] = 0  # What is dropped already keeps its reason.
    assert not mark_filtered(reasons, *sides, config=config).any()
    assert mark_filtered(reasons + KEPT, *sides, config=DataConfig()).min() == KEPT


FINE = {  # sources and targets, separated by |
    "capitals": ("In 1945 it ended.|A.", "1945 endete es.|სახლი."),
    "digits": ("1,00,000 or 1,000", "100,000 ١٬٠٠٠"),
    "placeholders": ("50% more", "50%-i"),
    "punctuation": ('"A?"|A.|A.|A?!|A?', "「行？」|لا.\u200f|ነው።|Ինչո՞ւ։|Ποιος;"),
    "urls": ("See http://a.org/b.|to a@b.org", "看http://a.org/b。|はa@b.orgまで"),
}


@pytest.mark.parametrize("name", FINE)
def test_what_another_language_writes_otherwise_is_kept(name):
    sides = [side.split("|") for side in FINE[name]]
    reasons = np.full(len(sides[0]), KEPT, np.int8)
    found = mark_filtered(reasons, *sides, config=DataConfig(filters=name))
    assert found.tolist() == reasons.tolist()


@pytest.mark.parametrize("turn", [1, -1])
def test_what_a_language_rarely_has_is_not_of_one_that_lacks_it(turn):
    text = "the quick brown fox jumps over the lazy dog"
    rare = dict.fromkeys(trigrams_of(text), math.log(5 / 4_000_000))
    known = [rare, {"der": math.log(0.02)}][::turn]
    found = mark_filtered(
        np.full(1, KEPT, np.int8),
        *[[text], ["nein"]][::turn],
        config=DataConfig(filters="language"),
        trigrams=dict(zip(SIDES, known, strict=True)),
    )
    assert found == KEPT


@pytest.mark.parametrize(
    "filters",
    [
        *("digit", "digits,digits", "script", "script:latin", "digits:thai-thai"),
        *("script:de=latin-latin", "script:de=latn", "script:a-b"),
    ],
)
def test_an_unknown_filter_is_refused_with_the_known_ones(filters):
    with pytest.raises(ConfigError, match=r"known are digits, urls.*latin, tamil"):
        DataConfig(filters=filters)


def test_a_long_run_of_zeros_takes_no_long_time():
    assert not re.search(PLACEHOLDER, "%" + 100_000 * "0")  # else half a minute


def test_blanks_around_a_line_do_not_change_its_hash_and_those_inside_do():
    one, two, three = text_hashes(["a cat", "\ta cat \u2003", "a  cat"])
    assert one == two
    assert one != three


def test_pair_hashes_tell_pairs_apart_that_share_a_side():
    source = text_hashes(["a", "a", "b", "x"])
    target = text_hashes(["x", "y", "x", "a"])
    assert len(set(pair_hashes(source, target).tolist())) == 4


def test_what_was_seen_equals_a_set():
    chance = np.random.default_rng(5)
    seen, known = DuplicateFilter(), set()
    for size in chance.integers(0, 97, 41):
        hashes = chance.integers(0, 997, size).astype(np.uint64)
        expected = []
        for value in hashes.tolist():
            expected.append(value not in known)
            known.add(value)
        assert seen.is_new(hashes).tolist() == expected
    assert len(known) > 500


def test_what_a_filter_compares_no_modifier_changes():
    kept = [
        *KEPT_PAIRS[1],
        "%(a)s is {x} of %.2f%% &amp; <a href='y z'>",
        "www.x.org/Y",
    ]
    for text in kept:
        for name in MODIFIERS[5:]:
            for key in range(20):
                changed, _ = modify([name], f"so is {text} now", "", Random(key))
                found = re.findall(f"{URL}|{PLACEHOLDER}", text)
                assert re.findall(f"{URL}|{PLACEHOLDER}", changed) == found
