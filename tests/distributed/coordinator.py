"""A fake of JAX's coordinator without a network."""

import threading
import time


class Coordinator:
    """The client of a coordinator that the threads of a test share."""

    def __init__(self):
        self.texts = {}
        self._changed = threading.Condition()

    def key_value_set(self, key, text):
        with self._changed:
            if key in self.texts:
                raise RuntimeError(f"ALREADY_EXISTS: {key}")
            self.texts[key] = text
            self._changed.notify_all()

    def blocking_key_value_get(self, key, milliseconds):
        deadline = time.monotonic() + milliseconds / 1000
        with self._changed:
            while key not in self.texts:
                if not self._changed.wait(deadline - time.monotonic()):
                    raise RuntimeError(f"DEADLINE_EXCEEDED: {key}")
            return self.texts[key]
