import os

import pytest

from t2t_jax.environment.machine import Cgroup, check_machine, read_cgroup

CPUINFO = "processor : 0\nmodel name : Old Xeon\nflags : fpu sse4_2 avx\n"


def write(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("files", "limits"),
    [
        ({}, Cgroup(None, None)),
        (
            {
                "proc__self__cgroup": "0::/job/task\n",
                "sys__fs__cgroup__job__cpu_DOT_max": "150000 100000\n",
                "sys__fs__cgroup__job__task__cpu_DOT_max": "max 100000\n",
                "sys__fs__cgroup__job__task__memory_DOT_max": "7000000\n",
                "sys__fs__cgroup__job__memory_DOT_max": "5000000\n",
            },
            Cgroup(1.5, 5_000_000),
        ),
        (
            {
                "proc__self__cgroup": "4:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n",
                "sys__fs__cgroup__memory__memory_DOT_limit_in_bytes": "11000000\n",
                "sys__fs__cgroup__memory__docker__1__memory_DOT_limit_in_bytes": (
                    "9223372036854771712\n"
                ),
                "sys__fs__cgroup__cpu__docker__1__cpu_DOT_cfs_quota_us": "300000\n",
                "sys__fs__cgroup__cpu__docker__1__cpu_DOT_cfs_period_us": "100000\n",
                "sys__fs__cgroup__cpu__cpu_DOT_cfs_quota_us": "-1\n",
                "sys__fs__cgroup__cpu__cpu_DOT_cfs_period_us": "100000\n",
            },
            Cgroup(3.0, 11_000_000),
        ),
    ],
    ids=["none", "version 2", "version 1"],
)
def test_limits_are_the_tightest_of_all_groups_above(tmp_path, files, limits):
    write(tmp_path, **files)
    assert read_cgroup(tmp_path) == limits


def test_a_small_machine_is_warned_of(tmp_path):
    write(
        tmp_path,
        proc__cpuinfo=CPUINFO,
        proc__meminfo="MemTotal: 4000000 kB\nMemAvailable: 1000000 kB\n",
        proc__self__cgroup="0::/\n",
        sys__fs__cgroup__cpu_DOT_max="50000 100000",
        sys__kernel__mm__transparent_hugepage__enabled="always madvise [never]",
    )
    found = {check.name: check for check in check_machine(tmp_path)}
    names = ("processors", "instructions", "memory", "huge pages")
    if os.uname().machine != "x86_64":
        names = ("processors", "memory", "huge pages")
    assert {found[name].status for name in names} == {"warning"}
    assert all(found[name].advice for name in names)
    assert found["processors"].message.startswith("0.5 of ")
    assert "taskset --cpu-list 0-0" in found["processors"].advice
    assert found["instructions"].details["features"] == []
    assert found["memory"].message.startswith("4.1 GB (limit of the machine)")


def test_a_system_without_proc_is_not_an_error(tmp_path):
    found = {check.name: check.status for check in check_machine(tmp_path)}
    assert found.keys() == {"processors", "memory", "open files"}
    assert set(found.values()) <= {"ok", "warning"}
