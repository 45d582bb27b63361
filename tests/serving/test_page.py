"""The page in a real browser, against a model that needs no JAX."""

import pytest

from tests.report.browser import chromium, requested
from tests.serving.fake_server import fake_server
from tests.waiting import wait_for

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.by import By  # noqa: E402


@pytest.fixture(scope="module")
def url():
    with fake_server("0", {}) as (_, port):
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def by_id(browser, name):
    return browser.find_element(By.ID, name)


def translated(browser, text):
    """Types a text into a fresh page, and waits for its translation."""
    box = by_id(browser, "source")
    box.clear()
    box.send_keys(text)
    wanted = text.upper().split()
    wait_for(lambda: by_id(browser, "output").text.split() == wanted)
    return browser.find_elements(By.CSS_SELECTOR, ".word")


def test_typing_reading_pointing_and_choosing(browser, url):
    browser.get(url)
    words = translated(browser, "the quick fox. It runs")
    assert [word.text for word in words] == ["THE", "QUICK", "FOX.", "IT", "RUNS"]
    # Word to source.
    webdriver.ActionChains(browser).move_to_element(words[1]).perform()
    linked = wait_for(lambda: browser.find_elements(By.CSS_SELECTOR, "#mirror .linked"))
    assert [one.get_attribute("textContent") for one in linked] == ["quick"]
    assert by_id(browser, "word").text.startswith("QUICK \u2190")
    # Unsure words are shaded: FakeModel is unsure of each sentence's last.
    shaded = browser.find_elements(By.CSS_SELECTOR, "#output .unsure")
    assert [one.text for one in shaded] == ["FOX.", "RUNS"]
    browser.find_elements(By.CSS_SELECTOR, "#alternatives button")[1].click()
    assert by_id(browser, "output").text == "THE QUICK FOX.! IT RUNS"
    wait_for(lambda: browser.find_elements(By.CSS_SELECTOR, "#history button"))


def test_text_is_never_code(browser, url):
    browser.get(url)
    translated(browser, "<img src=x onerror=alert(1)> &amp; <b>hi</b>")
    assert browser.find_elements(By.CSS_SELECTOR, "#output img, #output b") == []
    wait_for(lambda: browser.find_elements(By.CSS_SELECTOR, "#history button"))
    assert browser.find_elements(By.CSS_SELECTOR, "#history img") == []


def test_no_errors_and_no_requests_to_other_hosts(browser, url):
    # Of all tests above: the logs are read once.
    severe = [one for one in browser.get_log("browser") if one["level"] != "INFO"]
    assert severe == []
    asked = requested(browser)
    assert len(asked) > 8
    own = (url, "data:", "chrome", "about:blank")
    assert [one for one in asked if not one.startswith(own)] == []
