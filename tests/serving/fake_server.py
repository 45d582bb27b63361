"""Serves the fake model, both directions, in a process of its own."""

import json
import subprocess
import sys
from contextlib import contextmanager

from t2t_jax.serving.config import ServingConfig
from t2t_jax.serving.server import open_socket, serve
from tests.integration.tiny import ROOT
from tests.serving.fakes import FakeModel, fake_app


@contextmanager
def fake_server(seconds, limits):
    """Yields the process and its port.

    Args:
      seconds: that a group of sentences takes, as text.
      limits: of `ServingConfig`.
    """
    command = [sys.executable, "-m", __name__, seconds, json.dumps(limits)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, cwd=ROOT) as process:
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def main(seconds, limits):
    """Prints the port when requests are accepted."""
    limits = json.loads(limits)
    limits["allowed_hosts"] = frozenset({"127.0.0.1", "localhost"})
    limits["api_keys"] = frozenset(limits.get("api_keys", ()))
    model = FakeModel(seconds=float(seconds))
    app, _ = fake_app({("en", "de"): model, ("de", "en"): model}, **limits)
    with open_socket("127.0.0.1", 0) as opened:
        port = opened.getsockname()[1]
        config = ServingConfig(**limits)
        serve(app, opened, config, on_ready=lambda: print(port, flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
