"""A fake of JAX's coordinator without a network."""

import threading
import time


class Coordinator:
    """The client of a coordinator that the threads of a test share."""

    def __init__(self):
        self.texts, self.is_gone = {}, False
        self._changed = threading.Condition()

    def key_value_set(self, key, text, allow_overwrite=False):
        with self._changed:
            if self.is_gone or (key in self.texts and not allow_overwrite):
                raise RuntimeError(f"ALREADY_EXISTS: {key}")
            self.texts[key] = text
            self._changed.notify_all()

    def key_value_dir_get(self, folder):
        if self.is_gone:
            raise RuntimeError("UNAVAILABLE")
        return [(k, v) for k, v in sorted(self.texts.items()) if k.startswith(folder)]

    def blocking_key_value_get(self, key, milliseconds):
        deadline = time.monotonic() + milliseconds / 1000
        with self._changed:
            while key not in self.texts:
                if self.is_gone:
                    raise RuntimeError("UNAVAILABLE")
                if not self._changed.wait(deadline - time.monotonic()):
                    raise RuntimeError(f"DEADLINE_EXCEEDED: {key}")
            return self.texts[key]
