import re

import pytest
import yaml

from t2t_jax import errors
from tests.launch.programs import LAUNCH

FOLDER = LAUNCH / "kubernetes"


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
    codes = [
        rule["onExitCodes"]["values"]
        for rule in job["podFailurePolicy"]["rules"]
        if "onExitCodes" in rule
    ]
    assert codes == [sorted(mistakes), [75]]
    mistake, stop = jobset["spec"]["failurePolicy"]["rules"]
    (pattern,) = mistake["onJobFailureMessagePatterns"]
    # As the documentation of Kubernetes has the message of a Job that failed.
    for code in (*mistakes, 1, 69, 70, 74, 75, 134, 137):
        message = f"Container train failed with exit code {code} matching FailJob rule"
        assert bool(re.search(pattern, message)) == (code in mistakes)
    reasons = {tuple(rule["onJobFailureReasons"]) for rule in (mistake, stop)}
    assert reasons == {("PodFailurePolicy",)}
    assert mistake["action"] == "FailJobSet"
    assert stop["action"] == "RestartJobSetAndIgnoreMaxRestarts"
    assert jobset["spec"]["failurePolicy"]["maxRestarts"] > 0


def test_nobody_is_root_and_nothing_is_secret(pod):
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    user, group = re.findall(r"^USER (\d+):(\d+)$", text, re.M)[-1]
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    assert (context["runAsUser"], context["fsGroup"]) == (int(user), int(group))
    assert container(pod)["securityContext"]["allowPrivilegeEscalation"] is False
    assert not re.search("password|token|secret=", text, re.I)
