import numpy as np
import pytest

from t2t_jax.functional.shapes import check_axes


def test_letters_get_the_sizes_they_stand_for():
    sizes = check_axes(
        source=(np.zeros((2, 3)), "BxS"), memory=(np.zeros((2, 3, 5)), "BxSx5")
    )
    assert sizes == {"B": 2, "S": 3}


def test_leading_axes_may_be_any():
    assert check_axes(q=(np.zeros((7, 11, 2, 3)), "...xQxDk")) == {"Q": 2, "Dk": 3}


def test_an_argument_left_out_is_not_checked():
    assert check_axes(rows=(None, "B")) == {}


def test_a_missing_axis_is_named():
    with pytest.raises(ValueError, match=r"source must have the axes \[B, S\].*\[3\]"):
        check_axes(source=(np.zeros(3), "BxS"))


def test_a_missing_axis_is_named_below_leading_ones():
    with pytest.raises(ValueError, match=r"q must have the axes \[\.\.\., Q, Dk\]"):
        check_axes(q=(np.zeros(3), "...xQxDk"))


def test_two_sizes_of_a_letter_are_told_with_both_arguments():
    with pytest.raises(ValueError, match=r"memory .* S=3 \(as in source\).*\[2, 5\]"):
        check_axes(source=(np.zeros((2, 3)), "BxS"), memory=(np.zeros((2, 5)), "BxS"))


def test_a_number_must_be_met():
    with pytest.raises(ValueError, match=r"memory must be \[B, 5\] with 5=5"):
        check_axes(memory=(np.zeros((2, 7)), "Bx5"))
