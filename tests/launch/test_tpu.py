from tests.launch.programs import command, environment, launch


def test_arguments_arrive_on_the_workers_as_they_were_given(tmp_path):
    arguments = ["--config=a b.py", "--workdir=/mnt/it's $HOME;", ""]
    # A worker's shell reads the command; here it is ssh's last word, run by bash.
    command(tmp_path / "bin", "gcloud", 'for word; do true; done; bash -c "${word#*=}"')
    home = tmp_path / "t2t_jax"
    command(home, "python", 'printf "%s\\n" "$@"')
    (home / ".venv/bin").mkdir(parents=True)
    (home / "python").rename(home / ".venv/bin/python")
    argv = ["--zone=us-west4-a", "--", *arguments]
    env = environment(path=tmp_path / "bin")
    done = launch("tpu/run.sh", *argv, environ=env, cwd=tmp_path)
    assert done.stdout.splitlines() == ["-m", "t2t_jax.main", *arguments]
