"""What is read of a trace, drawn by hand.

Seen to fail: without the ends that a CPU notes apart, or taken by their number alone;
where any event counts as an operation; where the shorter of two that begin together
comes first; where what is under way is given up when another begins.
"""

from types import SimpleNamespace

import jax
import pytest

from t2t_jax.training.profiling.hlo_categories import OpCategory
from t2t_jax.training.profiling.trace_summary import (
    Operation,
    operations,
    self_times,
    summarize_trace,
)

ROLES = {
    "jit_step/dot.1": OpCategory("matrix products", "attention"),
    "jit_step/dot.2": OpCategory("matrix products", "logits"),
    "jit_step/add.3": OpCategory("elementwise", "attention"),
}


def event(name, begin, end, **stats):
    return SimpleNamespace(
        name=name, start_ns=begin, end_ns=end, stats=list(stats.items())
    )


def plane(*lines):
    return SimpleNamespace(lines=[SimpleNamespace(events=line) for line in lines])


def done(name, begin, end, module="jit_step"):
    return event("a kernel", begin, end, hlo_module=module, hlo_op=name)


@pytest.fixture
def said_of(monkeypatch):
    """Makes of planes what `summarize_trace` reads of a file."""

    def read(*planes):
        data = SimpleNamespace(planes=planes)
        reader = SimpleNamespace(from_file=lambda path: data)
        monkeypatch.setattr(jax.profiler, "ProfileData", reader)
        return summarize_trace("a file", ROLES)

    return read


def test_only_what_has_the_name_of_an_operation_is_one():
    found = operations(
        plane(
            [event("waiting", 0, 9, size=7), event("more waiting", 0, 9)],
            [event("kernel_17", 3, 5, hlo_op="dot.1")],
        )
    )
    assert list(found) == [Operation("dot.1", 3, 5)]


def test_what_other_threads_go_on_with_ends_where_that_is_said():
    found = operations(
        plane(
            [
                event("dot.1", 3, 5, hlo_op="dot.1", _p=17),
                event("dot.2", 5, 9, hlo_op="dot.2", _p=19),
                event("end: dot.2", 7, 7, _c=19),
            ],
            [event("end: dot.1", 12, 13, _c=17), event("end: dot.2", 40, 41, _c=17)],
        )
    )
    assert list(found) == [Operation("dot.1", 3, 12), Operation("dot.2", 5, 9)]


def test_a_moment_is_of_the_operation_that_began_last():
    #   0         1         2
    #   0123456789012345678901234567
    #   loop---------
    #      dot-----
    #       in
    #                 first---
    #                  sec-
    #                     longer
    #                            dot
    spans = [
        *(("dot", 3, 11), ("loop", 0, 13), ("in", 4, 6), ("first", 14, 22)),
        *(("sec", 15, 19), ("longer", 18, 24), ("dot", 25, 28)),
    ]
    times = self_times(Operation(*span) for span in spans)
    assert times == {"loop": 5, "dot": 9, "in": 2, "first": 1, "sec": 3, "longer": 6}
    assert times.total() == 28 - (14 - 13) - (25 - 24)


def test_of_two_that_begin_together_the_longer_is_around_the_other():
    both = [Operation("dot", 0, 3), Operation("loop", 0, 7)]
    assert self_times(both) == self_times(both[::-1]) == {"dot": 3, "loop": 4}


def test_a_summary_adds_up_by_kind_and_by_part(said_of):
    said = said_of(
        plane(
            [done("dot.1", 0, 8), done("dot.2", 12, 16), event("host", 0, 99)],
            [done("add.3", 16, 20), done("dot.1", 4, 8)],
            [],
        )
    )
    assert said == (
        "The devices were busy for 80.0 % of the time between the first and the last "
        "operation: matrix products 75.0 %, elementwise 25.0 %.\n"
        "By parts of the step: attention 75.0 %, logits 25.0 %."
    )


def test_each_device_is_busy_for_itself(said_of):
    one, other = [done("dot.1", 0, 4)], [done("dot.1", 0, 1), done("dot.1", 3, 4)]
    host = [event("host", 0, 9)]
    assert "busy for 75.0 % of" in said_of(plane(one), plane(other), plane(host))


def test_what_the_step_does_not_have_is_of_other_programs(said_of):
    evaluation = done("dot.1", 1, 4, module="jit_evaluate")
    said = said_of(plane([done("dot.1", 0, 1), evaluation]))
    assert said.count("other programs 75.0 %") == 2


def test_a_trace_without_operations_is_no_mistake(said_of):
    assert "does not contain" in said_of(plane([event("host", 0, 9)]), plane())
