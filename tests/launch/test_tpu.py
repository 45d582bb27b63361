import shlex

import pytest

from tests.launch.programs import command, environment, launch

ZONE = "--zone=us-west4-a"


def printed(script, *arguments):
    done = launch(f"tpu/{script}", *arguments, "--print", env=environment())
    assert done.returncode == 0, done.stderr
    return [shlex.split(line) for line in done.stdout.splitlines()]


def command_of(line):
    return next(word for word in line if word.startswith("--command=")).split("=", 1)[1]


def test_arguments_arrive_on_the_workers_as_they_were_given(tmp_path):
    arguments = ["--config=a b.py", "--workdir=/mnt/it's $HOME;", ""]
    # A worker's shell reads the command; here it is ssh's last word, run by bash.
    command(tmp_path / "bin", "gcloud", 'for word; do true; done; bash -c "${word#*=}"')
    home = tmp_path / "t2t_jax"
    command(home, "python", 'printf "%s\\n" "$@"')
    (home / ".venv/bin").mkdir(parents=True)
    (home / "python").rename(home / ".venv/bin/python")
    done = launch(
        "tpu/run.sh",
        ZONE,
        "--",
        *arguments,
        env=environment(path=tmp_path / "bin"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["-m", "t2t_jax.main", *arguments]


def test_stop_does_not_end_the_shell_that_says_it():
    (line,) = printed("run.sh", ZONE, "--stop")
    words = shlex.split(command_of(line))
    assert words[:2] == ["pkill", "-TERM"]
    assert words[-1] == "[p]ython -m t2t_jax.main"


def test_create_quotes_what_it_mounts_on_all_workers():
    *_, copy, install, mount = printed("create.sh", ZONE, "--nfs=10.0.0.2:/a b")
    assert "--worker=all" in copy
    assert "'.[tpu]'" in command_of(install)
    assert "10.0.0.2:/a b" in shlex.split(command_of(mount).replace(";", " ; "))


@pytest.mark.parametrize("script", ["create.sh", "run.sh", "delete.sh"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "which zone?"), ([ZONE, "--wrong"], "unknown option '--wrong'")],
)
def test_a_wrong_option_is_refused(script, arguments, message):
    done = launch(f"tpu/{script}", *arguments, env=environment())
    assert done.returncode == 64
    assert message in done.stderr
