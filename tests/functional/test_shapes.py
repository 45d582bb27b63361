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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": ((3,), "BxS")}, r"source must have the axes \[B, S\].*\[3\]"),
        ({"q": ((3,), "...xQxDk")}, r"q must have the axes \[\.\.\., Q, Dk\]"),
        (
            {"source": ((2, 3), "BxS"), "memory": ((2, 5), "BxS")},
            r"memory .* S=3 \(as in source\).*\[2, 5\]",
        ),
        ({"memory": ((2, 7), "Bx5")}, r"memory must be \[B, 5\] with 5=5"),
    ],
)
def test_an_axis_that_is_missing_or_of_another_size_is_named(arguments, message):
    arrays = {
        name: (np.zeros(shape), axes) for name, (shape, axes) in arguments.items()
    }
    with pytest.raises(ValueError, match=message):
        check_axes(**arrays)
