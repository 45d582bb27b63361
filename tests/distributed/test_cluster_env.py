import pytest

from t2t_jax.distributed import cluster_env
from t2t_jax.distributed.cluster_env import (
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


def test_without_settings_there_is_a_single_process():
    assert find() is None


def test_three_flags_define_a_process():
    info = find(coordinator_address="a:1", num_processes=3, process_id=2)
    assert info == ProcessInfo(
        index=2, count=3, source="--num_processes=3", address="a:1"
    )


def test_process_0_is_not_mistaken_for_no_process():
    info = find(coordinator_address="a:1", num_processes=3, process_id=0)
    assert (info.index, info.count) == (0, 3)


@pytest.mark.parametrize(
    "flags",
    [
        {"num_processes": 1},
        {"num_processes": 1, "process_id": 0},
        {"num_processes": 1, "process_id": 0, "coordinator_address": "a:1"},
    ],
)
def test_one_process_is_single_with_any_other_setting(flags):
    assert find(**flags) is None


def test_the_index_of_a_kubernetes_job_is_the_process_id():
    index = {"JOB_COMPLETION_INDEX": "4"}
    info = find(index, coordinator_address="a:1", num_processes=5)
    assert (info.index, info.count) == (4, 5)
    given = find(index, coordinator_address="a:1", num_processes=5, process_id=2)
    assert given.index == 2


def test_the_index_of_a_kubernetes_job_is_not_sufficient():
    assert find({"JOB_COMPLETION_INDEX": "4"}) is None


@pytest.mark.parametrize(
    ("flags", "missing"),
    [
        ({"num_processes": 2}, "--coordinator_address, --process_id are missing"),
        ({"process_id": 0}, "--coordinator_address, --num_processes are missing"),
        ({"coordinator_address": "a:1"}, "--num_processes, --process_id are missing"),
        ({"coordinator_address": "a:1", "num_processes": 2}, "--process_id is missing"),
        ({"num_processes": 2, "process_id": 1}, "--coordinator_address is missing"),
    ],
    ids=str,
)
def test_what_is_missing_of_the_flags_is_named(flags, missing):
    with pytest.raises(UserError, match=missing):
        find(**flags)


@pytest.mark.parametrize("index", [3, 17])
def test_a_process_id_beyond_the_number_is_refused(index):
    with pytest.raises(UserError, match=f"--process_id={index} must .* from 0 to 2"):
        find(coordinator_address="a:1", num_processes=3, process_id=index)


def test_one_process_with_a_higher_number_is_refused():
    with pytest.raises(UserError, match=r"--process_id=1 must .* from 0 to 0"):
        find(coordinator_address="a:1", num_processes=1, process_id=1)


@pytest.mark.parametrize("index", ["3", "x", "-1"])
def test_a_completion_index_out_of_range_is_refused(index):
    with pytest.raises(UserError, match=f"JOB_COMPLETION_INDEX={index} must"):
        find(
            {"JOB_COMPLETION_INDEX": index}, coordinator_address="a:1", num_processes=3
        )


def test_a_task_of_srun_is_detected():
    info = find(STEP)
    assert (info.index, info.count, info.detected_by) == (5, 6, "slurm")
    assert info.source == "SLURM_STEP_NUM_TASKS=6"
    assert info.address == ""


def test_flags_win_over_slurm():
    info = find(STEP, coordinator_address="a:1", num_processes=2, process_id=1)
    assert (info.index, info.count, info.detected_by) == (1, 2, "")


@pytest.mark.parametrize("name", ["SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID"])
def test_a_batch_script_is_a_single_process(name):
    script = {key: value for key, value in STEP.items() if key != name}
    assert find(script) is None


def test_a_step_of_one_task_is_a_single_process():
    assert find({**STEP, "SLURM_STEP_NUM_TASKS": "1"}) is None


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
        ({"SLURM_STEP_TASKS_PER_NODE": "1"}, None),
        ({"SLURM_STEP_TASKS_PER_NODE": "1,3,2"}, (2,)),
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


class FakePod:
    """A TPU pod as JAX would find it."""

    name = "faketpu"
    present, count = True, 4

    @classmethod
    def is_env_present(cls):
        return cls.present

    @classmethod
    def get_process_count(cls):
        return cls.count

    @classmethod
    def get_process_id(cls):
        return 3


@pytest.fixture
def pod(monkeypatch):
    from jax._src import clusters as of_jax

    class Pod(FakePod):
        pass

    class Absent(FakePod):
        present = False

    monkeypatch.setattr(cluster_env, "find_spec", lambda name: name)
    monkeypatch.setattr(of_jax, "GkeTpuCluster", Absent)
    monkeypatch.setattr(of_jax, "GceTpuCluster", Pod)
    return Pod


def test_a_host_of_a_tpu_pod_is_detected(pod):
    info = find()
    assert (info.index, info.count, info.detected_by) == (3, 4, "faketpu")
    assert info.source == "this TPU pod of 4 hosts"


def test_a_tpu_of_one_host_is_a_single_process(pod):
    pod.count = 1
    assert find() is None


def test_a_host_without_tpu_is_a_single_process_even_with_libtpu(pod):
    pod.present = False
    assert find() is None


def test_with_the_cpu_platform_no_tpu_is_detected(pod):
    assert find({"JAX_PLATFORMS": "cpu"}) is None
    assert find({"JAX_PLATFORMS": "tpu,cpu"}).count == 4


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("node-0:1234", ("node-0", 1234)),
        ("10.0.0.7:1", ("10.0.0.7", 1)),
        ("[fe80::7]:65535", ("fe80::7", 65535)),
    ],
)
def test_an_address_has_a_host_and_a_port(address, parts):
    assert split_address(address) == parts


@pytest.mark.parametrize(
    "address",
    [
        "",
        "host",
        "host:",
        ":1234",
        "host:0",
        "host:65536",
        "host:x",
        "fe80::7:1",
        "[]:1",
    ],
)
def test_an_invalid_address_is_refused(address):
    with pytest.raises(ValueError, match="is not host:port"):
        split_address(address)
