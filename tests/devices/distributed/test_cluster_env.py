from types import SimpleNamespace

import pytest

from t2t_jax.devices.distributed import cluster_env
from t2t_jax.devices.distributed.cluster_env import (
    ProcessInfo,
    detect_cluster,
    require_single_task,
    split_address,
)
from t2t_jax.errors import UserError

STEP = {
    "SLURM_JOB_ID": "7919",
    "SLURM_STEP_NODELIST": "node[03,05]",
    "SLURM_STEP_NUM_TASKS": "6",
    "SLURM_NTASKS": "6",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "2",
    "SLURM_STEP_TASKS_PER_NODE": "3(x2)",
}


@pytest.fixture(autouse=True)
def _no_tpu(monkeypatch):
    monkeypatch.setattr(cluster_env, "find_spec", lambda name: None)


def find(environ=None, **flags):
    return detect_cluster(environ=environ or {}, **flags)


SCRIPT = {key: value for key, value in STEP.items() if key != "SLURM_STEP_NUM_TASKS"}
NO_JOB = {key: value for key, value in STEP.items() if key != "SLURM_JOB_ID"}


@pytest.mark.parametrize(
    ("environ", "flags"),
    [
        ({}, {}),
        ({}, {"num_processes": 1, "process_id": 0, "coordinator_address": "a:1"}),
        ({"JOB_COMPLETION_INDEX": "4"}, {}),
        (SCRIPT, {}),
        (NO_JOB, {}),
        ({**STEP, "SLURM_STEP_NUM_TASKS": "1"}, {}),
    ],
    ids=str,
)
def test_a_process_is_single_unless_there_are_others(environ, flags):
    assert find(environ, **flags) is None


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"num_processes": 2}, "--coordinator_address, --process_id are missing"),
        ({"num_processes": 3, "process_id": 3}, "--process_id=3 must .* 0 to 2"),
        ({"num_processes": 4}, "JOB_COMPLETION_INDEX=x must"),
    ],
    ids=str,
)
def test_flags_that_do_not_name_one_of_several_processes_are_refused(flags, message):
    environ = {"JOB_COMPLETION_INDEX": "x"} if "INDEX" in message else {}
    if "must" in message:
        flags = {"coordinator_address": "a:1", **flags}
    with pytest.raises(UserError, match=message):
        find(environ, **flags)


def test_three_flags_define_a_process():
    info = find(coordinator_address="a:1", num_processes=3, process_id=2)
    assert info == ProcessInfo(
        index=2, count=3, source="--num_processes=3", address="a:1"
    )
    # Flags win over SLURM, and process 0 is not mistaken for no process.
    first = find(STEP, coordinator_address="a:1", num_processes=3, process_id=0)
    assert (first.index, first.count, first.detected_by) == (0, 3, "")


def test_the_index_of_a_kubernetes_job_is_the_process_id():
    index = {"JOB_COMPLETION_INDEX": "4"}
    info = find(index, coordinator_address="a:1", num_processes=5)
    assert (info.index, info.count) == (4, 5)
    given = find(index, coordinator_address="a:1", num_processes=5, process_id=2)
    assert given.index == 2


def test_a_task_of_srun_is_detected():
    info = find(STEP)
    assert (info.index, info.count, info.detected_by) == (5, 6, "slurm")
    assert info.source == "SLURM_STEP_NUM_TASKS=6"
    assert info.address == ""


def test_variables_that_slurm_has_not_passed_on_are_named():
    partial = {**STEP}
    del partial["SLURM_PROCID"], partial["SLURM_STEP_NODELIST"]
    with pytest.raises(UserError, match="SLURM_STEP_NODELIST, SLURM_PROCID is not set"):
        find(partial)


@pytest.mark.parametrize(
    ("changed", "devices"),
    [
        ({}, (2,)),
        ({"SLURM_STEP_TASKS_PER_NODE": "1(x6)"}, None),
        ({"SLURM_STEP_TASKS_PER_NODE": "11(x2)"}, (2,)),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2"}, (2,)),
        ({"CUDA_VISIBLE_DEVICES": "0"}, None),
    ],
    ids=str,
)
def test_a_task_of_slurm_takes_a_node_or_its_own_device(changed, devices):
    assert find({**STEP, **changed}).devices == devices


def test_other_modes_are_no_work_for_several_tasks():
    require_single_task("average", environ={})
    require_single_task("average", environ={**STEP, "SLURM_STEP_NUM_TASKS": "1"})
    with pytest.raises(UserError, match="--mode=average runs in one process"):
        require_single_task("average", environ=STEP)


@pytest.mark.parametrize(
    ("present", "hosts", "platforms", "is_several"),
    [
        (True, 4, "tpu,cpu", True),
        (True, 1, "tpu", False),
        (False, 4, "tpu", False),
        (True, 4, "cpu", False),
    ],
)
def test_a_host_of_a_tpu_pod_is_detected(
    monkeypatch, present, hosts, platforms, is_several
):
    from jax._src import clusters

    pod = SimpleNamespace(
        name="faketpu",
        is_env_present=lambda: present,
        get_process_count=lambda: hosts,
        get_process_id=lambda: 3,
    )
    monkeypatch.setattr(cluster_env, "find_spec", lambda name: name)
    monkeypatch.setattr(
        clusters, "GkeTpuCluster", SimpleNamespace(is_env_present=lambda: False)
    )
    monkeypatch.setattr(clusters, "GceTpuCluster", pod)
    info = find({"JAX_PLATFORMS": platforms})
    assert (info is not None) == is_several
    if info:
        assert (info.index, info.count, info.detected_by) == (3, 4, "faketpu")
        assert info.source == "this TPU pod of 4 hosts"


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("node-0:1234", ("node-0", 1234)),
        ("[fe80::7]:65535", ("fe80::7", 65535)),
    ],
)
def test_an_address_has_a_host_and_a_port(address, parts):
    assert split_address(address) == parts


@pytest.mark.parametrize(
    "address",
    ["", "host", "host:", ":1", "host:0", "host:65536", "fe80::7:1", "[]:1"],
)
def test_an_invalid_address_is_refused(address):
    with pytest.raises(ValueError, match="is not host:port"):
        split_address(address)
