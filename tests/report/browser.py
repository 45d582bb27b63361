"""Debian's chromium without a screen, by selenium; skips where either is missing."""

import json
import shutil
from contextlib import contextmanager

import pytest


@contextmanager
def chromium(profile, *, dark=False):
    """Yields a browser with a profile of its own, whose log keeps all messages."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium here")
    driver = shutil.which("chromedriver")
    if not (driver and shutil.which("chromium")):
        pytest.skip("chromium and chromium-driver are not installed here")
    options = webdriver.ChromeOptions()
    for flag in (
        *("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
        *("disable-background-networking", "disable-component-update", "disable-sync"),
        *(f"user-data-dir={profile}", "window-size=1280,900"),
    ):
        options.add_argument(f"--{flag}")
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    size = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})
        yield browser
    finally:
        browser.quit()


def requested(browser):
    """Lists the addresses of what was requested since the last call."""
    events = (json.loads(one["message"]) for one in browser.get_log("performance"))
    return [
        event["message"]["params"]["request"]["url"]
        for event in events
        if event["message"]["method"] == "Network.requestWillBeSent"
    ]
