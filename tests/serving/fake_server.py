"""Serves the fake model on a free port: `python -m tests.serving.fake_server SECONDS`.

Serves both directions. Environment: LIMITS, the limits of `ServingConfig` as JSON.
"""

import json
import os
import sys

from t2t_jax.serving.config import ServingConfig
from t2t_jax.serving.server import open_socket, serve
from tests.serving.fakes import FakeModel, fake_app


def main():
    limits = json.loads(os.environ.get("LIMITS", "{}"))
    limits["allowed_hosts"] = frozenset({"127.0.0.1", "localhost"})
    limits["api_keys"] = frozenset(limits.get("api_keys", ()))
    model = FakeModel(seconds=float(sys.argv[1]))
    models = {("en", "de"): model, ("de", "en"): model}
    app, _ = fake_app(models, **limits)
    with open_socket("127.0.0.1", 0) as opened:
        port = opened.getsockname()[1]
        serve(
            app,
            opened,
            ServingConfig(**limits),
            on_ready=lambda: print(port, flush=True),
        )


if __name__ == "__main__":
    main()
