import math

from t2t_jax.report.curves import curves, steps_of, thin
from t2t_jax.run.status import number
from tests.report.made_up_run import records, train_record


def test_each_quantity_has_its_curve():
    drawn = curves(steps_of(records()))["curves"]
    assert drawn["nll"]["train"][0] == list(range(10, 101, 10))
    assert drawn["bleu"] == {"eval": [[50, 100], [11.25, 17.5]]}
    assert drawn["padding_fraction"]["train"][1][0] == 7.0  # percent


def test_tokens_and_minutes_are_sums_over_the_records():
    axes = curves(steps_of(records()))["axes"]
    assert axes["step"][:3] == [0, 10, 20]
    assert axes["tokens"][:3] == [0, 13_000, 26_000]
    assert axes["minutes"][2] == round(2 * 13_000 / 6_500 / 60, 6)


def test_a_spike_survives_thinning():
    points = [(step, math.sin(step / 50)) for step in range(1, 100_001)]
    points[77_777] = (77_778, 99.0)
    points[22_222] = (22_223, -99.0)
    kept = thin(points, 500)
    assert len(kept) <= 502
    assert {(77_778, 99.0), (22_223, -99.0), points[0], points[-1]} <= set(kept)
    assert list(kept) == sorted(kept)


def test_what_is_not_a_finite_number_is_left_out():
    odd = [
        train_record(1, loss=None),
        train_record(2, loss="3"),
        train_record(3, loss=math.inf),
        train_record(4, loss=True),
        train_record(5, loss=2.5),
        {**train_record(3), "step": -3},
        {"step": "7", "kind": "train", "loss": 1.0},
    ]
    assert curves(steps_of(odd))["curves"]["loss"]["train"] == [[5], [2.5]]
    assert number({}, "loss") is None
