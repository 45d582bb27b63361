"""The pages in a real browser: what they draw, what they answer, what they request."""

import numpy as np
import pytest

from t2t_jax.evaluation.attention_maps import quantize
from t2t_jax.report.comparison import compare, compare_page, open_runs
from t2t_jax.report.run_page import run_page
from tests.report.browser import chromium, requested
from tests.report.made_up_run import HOSTILE, write_run

SHAPES = {"encoder": (4, 4), "decoder": (5, 5), "cross": (5, 4)}


def made_up_attention():
    """Weights of 2 layers and 3 heads, of which head 1 of layer 1 is a diagonal."""
    source = ["A", "dog", "<b>", "</s>"]
    target = ["<s>", "Ein", "Hund", HOSTILE.replace("\ud800", ""), "."]
    maps = {}
    for kind, (queries, keys) in SHAPES.items():
        weights = np.full((2, 3, queries, keys), 1 / keys)
        weights[1, 1] = np.eye(queries, keys)
        maps[kind] = quantize(weights)
    return {
        **{"step": 100, "text": HOSTILE.replace("\ud800", ""), "translation": "x"},
        **{"source": source, "target": target, "maps": maps},
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    attention = [made_up_attention(), {**made_up_attention(), "text": "second"}]
    page = run_page(write_run(folder / "a", steps=1000), attention=attention)
    (folder / "run.html").write_text(page, encoding="utf-8")
    write_run(folder / "b", steps=600)
    runs = open_runs([str(folder / "a"), str(folder / "b")])
    tables = compare(runs, log=lambda line: None)
    (folder / "compare.html").write_text(compare_page(runs, tables), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def run(browser, pages):
    """The page of a run, freshly opened."""
    browser.get_log("performance")
    browser.get(f"file://{pages}/run.html")
    return browser


def find(browser, selector):
    return browser.find_element("css selector", selector)


def find_all(browser, selector):
    return browser.find_elements("css selector", selector)


def shown_text(browser, key):
    return find(browser, f'[data-key="{key}"] .readout').text


def press(browser, chart, key):
    find(browser, f'[data-key="{chart}"] .plot').send_keys(key)


def actions(browser):
    from selenium.webdriver import ActionChains

    return ActionChains(browser)


def scrolled(browser, found):
    """Brings an element into view."""
    how = "{block: 'center', behavior: 'instant'}"
    browser.execute_script(f"arguments[0].scrollIntoView({how})", found)
    return found


def complaints(browser):
    return [one["message"] for one in browser.get_log("browser")]


def test_every_curve_is_drawn_without_a_complaint_or_a_request(run, pages):
    drawn = find_all(run, ".chart path.curve")
    assert len(drawn) >= 8
    assert all("L" in one.get_attribute("d") for one in drawn)
    assert complaints(run) == []
    assert {*requested(run)} <= {f"file://{pages}/run.html", "data:,"}


def test_hostile_text_runs_nothing_and_is_shown(run):
    assert run.execute_script("return document.scripts.length") == 2
    assert "<script>alert(1)</script>" in find(run, "#samples-view").text
    assert run.title == "a · t2t_jax"


def test_the_values_at_the_cursor_are_shown_in_every_chart(run):
    plot = scrolled(run, find(run, '[data-key="bleu"] .plot'))
    actions(run).move_to_element(plot).perform()
    assert "step 500 development 11.25" in shown_text(run, "bleu")
    assert "step 500" in shown_text(run, "loss")
    assert find_all(run, ".plot .cursor")


def test_charts_work_by_keyboard(run):
    press(run, "loss", "\ue011")  # Home
    assert "step 10 " in shown_text(run, "loss")
    press(run, "loss", "\ue014")  # right
    assert "step 20 " in shown_text(run, "loss")
    assert "step 20" in find(run, "#reader").get_attribute("textContent")
    press(run, "loss", "+")
    assert find_all(run, "#chart-tools button")[-1].is_displayed()
    press(run, "loss", "0")
    assert not find_all(run, "#chart-tools button")[-1].is_displayed()


def test_a_head_and_a_word_show_what_they_attend_to(run):
    assert len(find_all(run, ".heads canvas")) == 2 * 4  # with the means
    head = find(run, 'button[aria-label="layer 1, head 1"]')
    run.execute_script("arguments[0].click()", head)
    assert head.get_attribute("aria-pressed") == "true"
    assert len(find_all(run, ".words line")) == 4
    words = find_all(run, ".words .queries button")
    actions(run).move_to_element(scrolled(run, words[2])).perform()
    assert [one.text for one in find_all(run, ".words small")] == ["", "", "1.00", ""]
    assert len(find_all(run, ".words line")) == 1
    assert words[3].text.startswith("<script>alert(1)")


def test_runs_are_compared_in_one_chart(browser, pages):
    browser.get(f"file://{pages}/compare.html")
    assert len(find_all(browser, '[data-key="bleu"] path.curve')) == 2
    press(browser, "bleu", "\ue011")
    assert "step 300" in shown_text(browser, "bleu")
    legend = browser.find_element("xpath", "//button[normalize-space()='b']")
    browser.execute_script("arguments[0].click()", legend)
    assert len(find_all(browser, '[data-key="bleu"] path.curve')) == 1
    assert complaints(browser) == []
