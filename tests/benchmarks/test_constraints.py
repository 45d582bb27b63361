"""The searches that `constraints.py` times are those of the constraints it names."""

import json
import sys

import constraints
import jax.numpy as jnp
import numpy as np
import pytest

TINY = {"num_layers": 1, "d_model": 8, "d_ff": 16, "num_heads": 2}


@pytest.fixture
def run(monkeypatch, capsys):
    monkeypatch.setitem(constraints.SIZES, "tiny", TINY)

    def run(*flags):
        argv = ["constraints.py", "--size=tiny", "--vocabulary=128", "--rows=2"]
        argv += ["--positions=6", "--rounds=3", *flags]
        monkeypatch.setattr(sys, "argv", argv)
        constraints.main()
        return capsys.readouterr().out

    return run


def test_each_constraint_has_figures_for_each_beam(run):
    report = json.loads(run("--beams=2,3", "--json"))
    assert [one["beams"] for one in report["runs"]] == [2, 3]
    for one in report["runs"]:
        assert list(one["constraints"]) == ["off", "terms", "tree"]
        for figures in one["constraints"].values():
            assert len(figures["rounds_ms"]) == 3
            median = sorted(figures["rounds_ms"])[1]
            assert figures["ms_per_position"] == pytest.approx(median / 6)
        assert one["constraints"]["off"]["ratio_to_off"] == 1.0
    assert report["versions"]["jax"]


def test_the_table_has_a_line_for_each(run):
    lines = run("--beams=2").splitlines()
    assert [line.split()[1] for line in lines[2:]] == ["off", "terms", "tree"]


def test_what_is_timed_is_constrained():
    built = constraints.constraints(128, rows=2, words=3)
    rule, words_B = built["tree"]
    state = rule.init(words_B, limits_B=jnp.array([9, 9]), num_beams=1)
    allowed = np.asarray(rule.bias(state, words_B, position=0) == 0)
    assert allowed.sum(axis=-1).tolist() == [[constraints.LABELS]] * 2
    rule, rows = built["terms"]
    assert rows.tokens_BxKxL.shape == (2, constraints.TERMS, constraints.TERM_TOKENS)
    state = rule.init(rows, limits_B=jnp.array([9, 9]), num_beams=1)
    assert not np.asarray(rule.may_end(state, rows)).any()


def test_a_vocabulary_without_room_for_trees_is_refused(run):
    with pytest.raises(SystemExit):
        run("--vocabulary=50")
