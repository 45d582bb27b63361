import re

import pytest
import yaml

from t2t_jax import errors
from tests.launch.programs import LAUNCH

FOLDER = LAUNCH / "kubernetes"
# What the failure of a Job says, by the Kubernetes documentation.
_MESSAGE = (
    "Container train for pod default/t2t-jax-train-0-1-x failed with exit code {} "
    "matching FailJob rule at index {}"
)


@pytest.fixture(scope="module")
def jobset():
    return yaml.safe_load((FOLDER / "train.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def job(jobset):
    (replicated,) = jobset["spec"]["replicatedJobs"]
    assert replicated["replicas"] == 1
    return replicated["template"]["spec"]


@pytest.fixture(scope="module")
def pod(job):
    return job["template"]["spec"]


@pytest.fixture(scope="module")
def flags(pod):
    return dict(
        flag.removeprefix("--").split("=", 1) for flag in container(pod)["args"]
    )


def container(pod):
    (only,) = pod["containers"]
    return only


def verdict(jobset, job, code):
    """Returns what JobSet does when a pod ends with `code`."""
    for index, rule in enumerate(job["podFailurePolicy"]["rules"]):
        if code in rule.get("onExitCodes", {}).get("values", []):
            assert rule["action"] == "FailJob"
            reason, message = "PodFailurePolicy", _MESSAGE.format(code, index)
            break
    else:
        reason, message = "BackoffLimitExceeded", "Job has reached the backoff limit"
    for rule in jobset["spec"]["failurePolicy"]["rules"]:
        patterns = rule.get("onJobFailureMessagePatterns", [""])
        if reason in rule["onJobFailureReasons"] and any(
            re.search(pattern, message) for pattern in patterns
        ):
            return rule["action"]
    return "RestartJobSet"


def test_the_three_numbers_of_pods_agree(job, flags):
    assert job["completionMode"] == "Indexed"
    assert job["completions"] == job["parallelism"] == int(flags["num_processes"])
    assert "process_id" not in flags  # the program takes JOB_COMPLETION_INDEX


def test_the_address_is_that_of_pod_0(jobset, pod, flags):
    assert jobset["apiVersion"] == "jobset.x-k8s.io/v1alpha2"
    assert jobset["spec"]["network"]["enableDNSHostnames"] is True
    name = jobset["metadata"]["name"]
    replicated = jobset["spec"]["replicatedJobs"][0]["name"]
    host, port = flags["coordinator_address"].split(":")
    assert host == f"{name}-{replicated}-0-0.{name}"
    assert container(pod)["ports"] == [{"containerPort": int(port)}]


def test_a_users_mistake_ends_the_run_and_a_stop_is_free(jobset, job):
    mistakes = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.UserError)
    } - {69, 74, 75}
    assert mistakes == {64, 65, 66, 73, 76, 78}
    for code in mistakes:
        assert verdict(jobset, job, code) == "FailJobSet", code
    assert verdict(jobset, job, 75) == "RestartJobSetAndIgnoreMaxRestarts"
    for code in (1, 69, 70, 74, 134, 137):
        assert verdict(jobset, job, code) == "RestartJobSet", code
    assert jobset["spec"]["failurePolicy"]["maxRestarts"] > 0


def test_nobody_is_root_and_nothing_is_secret(pod):
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    user, group = re.findall(r"^USER (\d+):(\d+)$", text, re.M)[-1]
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    assert (context["runAsUser"], context["fsGroup"]) == (int(user), int(group))
    assert container(pod)["securityContext"]["allowPrivilegeEscalation"] is False
    assert not re.search("password|token|secret=", text, re.I)
