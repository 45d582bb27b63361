import re

import yaml

from t2t_jax.errors import UserError
from tests.launch.programs import LAUNCH

FOLDER = LAUNCH / "kubernetes"
JOBSET = yaml.safe_load((FOLDER / "train.yaml").read_text(encoding="utf-8"))
(REPLICATED,) = JOBSET["spec"]["replicatedJobs"]
JOB = REPLICATED["template"]["spec"]
POD = JOB["template"]["spec"]
(CONTAINER,) = POD["containers"]
FLAGS = dict(flag.removeprefix("--").split("=", 1) for flag in CONTAINER["args"])


def test_the_three_numbers_of_pods_agree():
    assert REPLICATED["replicas"] == 1
    assert JOB["completionMode"] == "Indexed"
    assert JOB["completions"] == JOB["parallelism"] == int(FLAGS["num_processes"])
    assert "process_id" not in FLAGS  # the program takes JOB_COMPLETION_INDEX


def test_the_address_is_that_of_pod_0():
    name = JOBSET["metadata"]["name"]
    host, port = FLAGS["coordinator_address"].split(":")
    assert host == f"{name}-{REPLICATED['name']}-0-0.{name}"
    assert CONTAINER["ports"] == [{"containerPort": int(port)}]


def test_a_users_mistake_ends_the_run_and_a_stop_is_free():
    kinds = [UserError, *UserError.__subclasses__()]
    mistakes = {kind.exit_code for kind in kinds} - {69, 74, 75}
    assert mistakes == {64, 65, 66, 73, 76, 78}
    rules = [rule.get("onExitCodes") for rule in JOB["podFailurePolicy"]["rules"]]
    assert [rule["values"] for rule in rules if rule] == [sorted(mistakes), [75]]
    mistake, stop = JOBSET["spec"]["failurePolicy"]["rules"]
    (pattern,) = mistake["onJobFailureMessagePatterns"]
    # As the documentation of Kubernetes has the message of a Job that failed.
    for code in (*mistakes, 1, 69, 70, 74, 75, 134, 137):
        message = f"Container train failed with exit code {code} matching FailJob rule"
        assert bool(re.search(pattern, message)) == (code in mistakes)
    assert mistake["action"] == "FailJobSet"
    assert stop["action"] == "RestartJobSetAndIgnoreMaxRestarts"


def test_nobody_is_root_and_nothing_is_secret():
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    user, group = re.findall(r"^USER (\d+):(\d+)$", text, re.M)[-1]
    context = POD["securityContext"]
    assert context["runAsNonRoot"] is True
    assert (context["runAsUser"], context["fsGroup"]) == (int(user), int(group))
    assert CONTAINER["securityContext"]["allowPrivilegeEscalation"] is False
    assert not re.search("password|token|secret=", text, re.I)
