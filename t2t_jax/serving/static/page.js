// The page: reads what is typed, translates after a pause, and shows words and links.

import { apiKey, getJson, translate } from "./client.js";
import { drawAlternatives, drawAttention, element, History, markAttention } from "./panels.js";
import { linksOf, percent, probabilityOf, spansOf, wordsOf } from "./words.js";

const PAUSE = 350; // milliseconds of no typing, after which the text is translated
const SETTLED = 1500; // after which a translation is kept in the history
const MOST_DETAILED = 4000; // characters; longer texts come without words and weights
const MOST_IN_SENTENCE = 1000;
const ALTERNATIVES = 3;
const UNSURE = 0.6;
const VERY_UNSURE = 0.3;

const byId = (id) => document.getElementById(id);
const source = byId("source");
const output = byId("output");
const mirror = byId("mirror");
const from = byId("from");
const to = byId("to");

const state = { languages: [], limit: 0, sentences: [], end: "", chosen: -1, words: [] };
const history = new History(byId("history"), byId("history-section"), restore);
const timers = {};
let request = null;

function later(name, milliseconds, action) {
  clearTimeout(timers[name]);
  timers[name] = setTimeout(action, milliseconds);
}

// Languages

function fillLanguages() {
  const sources = state.languages.filter((one) => one.targets.length);
  const options = sources.map((one) => element("option", { value: one.code, text: one.name }));
  if (sources.length > 1) {
    options.push(element("option", { value: "auto", text: "Detect the language" }));
  }
  from.replaceChildren(...options);
  fillTargets();
}

function targetsOf(code) {
  const all = state.languages.flatMap((one) => one.targets);
  if (code === "auto") return [...new Set(all)];
  return state.languages.find((one) => one.code === code)?.targets ?? [];
}

function fillTargets() {
  const before = to.value;
  const codes = targetsOf(from.value);
  to.replaceChildren(
    ...codes.map((code) => element("option", { value: code, text: nameOf(code) })),
  );
  if (codes.includes(before)) to.value = before;
  const canSwap = targetsOf(to.value).includes(from.value);
  byId("swap").disabled = !canSwap;
  byId("swap").title = canSwap
    ? "Swap the languages"
    : "This server has no model for the other direction";
  source.lang = from.value === "auto" ? "" : from.value;
  output.lang = to.value;
  byId("detected").textContent = "";
}

function nameOf(code) {
  return state.languages.find((one) => one.code === code)?.name ?? code;
}

function swap() {
  const [source_, target] = [from.value, to.value];
  const text = translationOf();
  from.value = target;
  fillTargets();
  to.value = source_;
  fillTargets();
  if (text) setText(text);
  start(0);
}

// Translation

function start(milliseconds = PAUSE) {
  request?.abort();
  request = null;
  clearTimeout(timers.settled);
  grow();
  clearWords();
  const length = [...source.value].length;
  byId("count").textContent = length ? `${length.toLocaleString("en")} characters` : "";
  byId("clear").hidden = !source.value;
  if (!source.value.trim()) {
    clearTimeout(timers.typed);
    show([], "");
    say("");
    return;
  }
  later("typed", milliseconds, run);
}

async function run() {
  const text = source.value;
  if (state.limit && text.length > state.limit) {
    say(`The text is longer than ${state.limit.toLocaleString("en")} characters.`, true);
    return;
  }
  const controller = new AbortController();
  request = controller;
  output.classList.add("busy");
  later("busy", 400, () => say("Translating \u2026"));
  const longest = Math.max(...text.split(/[.!?…。！？\n]/).map((part) => part.length));
  const isDetailed = text.length <= MOST_DETAILED && longest < MOST_IN_SENTENCE;
  const found = [];
  try {
    const last = await translate(
      {
        ...{ q: text, source: from.value, target: to.value },
        ...{ alternatives: isDetailed ? ALTERNATIVES : 0, segments: true },
        ...{ token_scores: isDetailed, alignments: isDetailed, attention: isDetailed },
      },
      {
        signal: controller.signal,
        onSentence: (sentence) => {
          found.push(prepare(sentence));
          // Long texts appear sentence by sentence.
          if (request === controller) later("drawn", 60, () => show(found, ""));
        },
      },
    );
    if (request !== controller) return;
    show(found, last.ends[0]);
    showDetected(last);
    clearTimeout(timers.busy);
    say(isDetailed ? noteOf(found) : "Long text: words and attention are left out.");
    byId("spoken").textContent = translationOf();
    later("settled", SETTLED, () => remember(text));
  } catch (error) {
    if (request === controller) fail(error);
  } finally {
    if (request === controller) {
      clearTimeout(timers.busy);
      output.classList.remove("busy");
    }
  }
}

function fail(error) {
  clearTimeout(timers.busy);
  clearTimeout(timers.drawn);
  if (error.status === 401 || error.status === 403) {
    byId("key-form").hidden = false;
    say("An API key is needed.", true);
  } else if (error.status === 429 && error.seconds) {
    say(`The server is busy. Trying again in ${error.seconds} s.`, true);
    later("typed", 1000 * error.seconds, run);
  } else if (error.status) {
    say(error.message, true);
  } else {
    say("The server cannot be reached.", true);
  }
}

function say(text, isError = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("error", isError);
}

function noteOf(sentences) {
  const notes = {
    unfamiliar: "Some words are not in the training text.",
    no_output: "A sentence has no translation.",
    short: "A translation is much shorter than its sentence.",
    no_eos: "A sentence had not ended at its limit.",
    truncated: "A sentence was cut.",
  };
  return sentences.map((one) => notes[one.status]).find(Boolean) ?? "";
}

function showDetected(last) {
  const [detected] = last.detectedLanguage ?? [];
  byId("detected").textContent = detected ? nameOf(detected.language) : "";
}

function prepare(sentence) {
  const sources = wordsOf(sentence.source_tokens ?? []);
  const prepared = { ...sentence, sources, spans: spansOf(sentence.source, sources) };
  return choose(prepared, 0);
}

function choose(sentence, rank) {
  const hypothesis = sentence.hypotheses[rank];
  sentence.chosen = rank;
  sentence.targets = hypothesis.token_log_probabilities ? wordsOf(hypothesis.tokens) : [];
  sentence.links = linksOf(sentence.targets, sentence.sources, hypothesis.alignment);
  return sentence;
}

function textOf(sentence) {
  return sentence.hypotheses[sentence.chosen].translation;
}

function translationOf() {
  return state.sentences.map((one) => one.gap + textOf(one)).join("") + state.end;
}

function remember(text) {
  history.add({ text, translation: translationOf(), from: from.value, to: to.value });
}

function restore(item) {
  from.value = item.from;
  fillTargets();
  to.value = item.to;
  fillTargets();
  setText(item.text);
  start(0);
  source.focus();
}

function setText(text) {
  source.value = text;
}

// Drawing

function show(sentences, end) {
  clearTimeout(timers.drawn);
  Object.assign(state, { sentences, end, words: [] });
  output.replaceChildren(
    ...sentences.flatMap((sentence, number) => [sentence.gap, drawSentence(sentence, number)]),
  );
  state.words = [...output.querySelectorAll(".word")];
  if (state.words.length) state.words[0].tabIndex = 0;
  byId("copy").hidden = !sentences.length;
  drawMirror();
  select(sentences.length && sentences[0].targets.length ? 0 : -1);
}

function drawSentence(sentence, number) {
  const span = element("span", { className: "sentence" });
  span.dataset.sentence = String(number);
  const logs = sentence.hypotheses[sentence.chosen].token_log_probabilities;
  // What the words do not spell, such as joined scripts, is shown as it is.
  const joined = sentence.targets.map((w, i) => (i && w.space ? " " : "") + w.text).join("");
  if (!sentence.targets.length || joined !== textOf(sentence)) {
    sentence.targets = [];
    span.textContent = textOf(sentence);
    return span;
  }
  sentence.targets.forEach((word, index) => {
    if (index && word.space) span.append(" ");
    const probability = probabilityOf(word, logs);
    const part = element("span", { className: "word", text: word.text, tabIndex: -1 });
    part.setAttribute("role", "button");
    part.dataset.word = String(index);
    part.dataset.sentence = String(number);
    part.classList.toggle("unsure", probability < UNSURE);
    part.classList.toggle("very", probability < VERY_UNSURE);
    span.append(part);
  });
  return span;
}

// The mirror lies under the text that is typed, and marks words of it.
function drawMirror() {
  const parts = [];
  let position = 0;
  let text = source.value;
  state.sentences.forEach((sentence, number) => {
    const start = text.indexOf(sentence.source, position);
    if (start < 0) return;
    sentence.spans.forEach(([begin, stop], index) => {
      parts.push(text.slice(position, start + begin));
      const mark = element("span", { text: text.slice(start + begin, start + stop) });
      mark.dataset.sentence = String(number);
      mark.dataset.from = String(index);
      parts.push(mark);
      position = start + stop;
    });
  });
  mirror.replaceChildren(...parts, text.slice(position), "\n");
}

function grow() {
  source.style.height = "auto";
  source.style.height = `${source.scrollHeight}px`;
}

function select(number) {
  state.chosen = number;
  const sentence = state.sentences[number];
  byId("details").hidden = !sentence;
  byId("word").textContent = "";
  for (const one of output.querySelectorAll(".sentence")) {
    const isChosen = state.sentences.length > 1 && Number(one.dataset.sentence) === number;
    one.classList.toggle("chosen", isChosen);
  }
  if (!sentence) return;
  const several = state.sentences.length > 1;
  byId("details-title").textContent = several
    ? `Sentence ${number + 1} of ${state.sentences.length}`
    : "This sentence";
  drawAlternatives(byId("alternatives"), sentence, (rank) => {
    choose(sentence, rank);
    show(state.sentences, state.end);
    select(number);
    byId("alternatives").querySelector("[aria-pressed=true]")?.focus();
  });
  drawAttention(byId("attention"), sentence);
}

// Links between words

function clearWords() {
  for (const marked of document.querySelectorAll(".pointed, .linked")) {
    marked.classList.remove("pointed", "linked");
  }
  markAttention(byId("attention"), -1, new Set());
}

function mark(number, targets, sources, isTarget) {
  clearWords();
  for (const part of output.querySelectorAll(`.word[data-sentence="${number}"]`)) {
    if (!targets.has(Number(part.dataset.word))) continue;
    part.classList.add(isTarget ? "pointed" : "linked");
  }
  for (const part of mirror.querySelectorAll(`[data-sentence="${number}"]`)) {
    if (sources.has(Number(part.dataset.from))) part.classList.add("linked");
  }
  if (number === state.chosen) {
    markAttention(byId("attention"), targets.size === 1 ? [...targets][0] : -1, sources);
  }
}

function pointAtTarget(part) {
  const number = Number(part.dataset.sentence);
  const sentence = state.sentences[number];
  const index = Number(part.dataset.word);
  const word = sentence.targets[index];
  const links = sentence.links[index] ?? new Set();
  if (number !== state.chosen) select(number);
  mark(number, new Set([index]), links, true);
  const names = [...links].map((one) => sentence.sources[one].text).join(" ");
  const logs = sentence.hypotheses[sentence.chosen].token_log_probabilities;
  const sure = percent(probabilityOf(word, logs));
  byId("word").textContent = `${word.text}${names ? ` \u2190 ${names}` : ""}, ${sure}`;
}

function pointAtSource(part) {
  const number = Number(part.dataset.sentence);
  const sentence = state.sentences[number];
  const index = Number(part.dataset.from);
  const targets = new Set();
  sentence.links.forEach((links, target) => links.has(index) && targets.add(target));
  if (number !== state.chosen) select(number);
  mark(number, targets, new Set([index]), false);
  const names = [...targets].map((one) => sentence.targets[one].text).join(" ");
  const word = sentence.sources[index].text;
  byId("word").textContent = `${word}${names ? ` \u2192 ${names}` : ""}`;
}

function move(event) {
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  const index = state.words.indexOf(event.target);
  if (index < 0) return;
  let next = steps[event.key] ? index + steps[event.key] : index;
  if (event.key === "Home") next = 0;
  if (event.key === "End") next = state.words.length - 1;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    byId("alternatives").querySelector("button")?.focus();
  }
  const word = state.words[Math.min(Math.max(next, 0), state.words.length - 1)];
  if (word === event.target) return;
  event.preventDefault();
  event.target.tabIndex = -1;
  word.tabIndex = 0;
  word.focus();
}

// Theme

function changeTheme() {
  const { dataset } = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  dataset.theme = (dataset.theme ?? system) === "dark" ? "light" : "dark";
  sessionStorage.setItem("t2t_jax.theme", dataset.theme);
}

async function copy() {
  try {
    await navigator.clipboard.writeText(translationOf());
    byId("copy").textContent = "Copied";
  } catch {
    // Without a secure connection there is no clipboard: select the text instead.
    getSelection().selectAllChildren(output);
    byId("copy").textContent = "Selected";
  }
  later("copied", 1500, () => (byId("copy").textContent = "Copy"));
}

function listen() {
  source.addEventListener("input", () => start());
  source.addEventListener("mousemove", ({ clientX, clientY }) => {
    const under = document.elementsFromPoint(clientX, clientY);
    const part = under.find((one) => one.dataset?.from !== undefined);
    if (part) pointAtSource(part);
    else clearWords();
  });
  source.addEventListener("mouseleave", clearWords);
  for (const kind of ["mouseover", "focusin", "click"]) {
    output.addEventListener(kind, ({ target }) => {
      if (target.classList.contains("word")) pointAtTarget(target);
    });
  }
  output.addEventListener("mouseleave", clearWords);
  output.addEventListener("keydown", move);
  from.addEventListener("change", () => (fillTargets(), start(0)));
  to.addEventListener("change", () => (fillTargets(), start(0)));
  byId("swap").addEventListener("click", swap);
  byId("copy").addEventListener("click", copy);
  byId("clear").addEventListener("click", () => (setText(""), start(0), source.focus()));
  byId("forget").addEventListener("click", () => history.clear());
  byId("theme").addEventListener("click", changeTheme);
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    apiKey.set(byId("key").value);
    byId("key-form").hidden = true;
    start(0);
  });
  addEventListener("resize", grow);
}

async function open() {
  const theme = sessionStorage.getItem("t2t_jax.theme");
  if (theme) document.documentElement.dataset.theme = theme;
  listen();
  try {
    const [languages, settings] = await Promise.all([
      getJson("languages"),
      getJson("frontend/settings"),
    ]);
    state.languages = languages;
    state.limit = settings.charLimit;
    fillLanguages();
    byId("key-form").hidden = !settings.keyRequired || Boolean(apiKey.get());
  } catch (error) {
    fail(error);
    return;
  }
  source.focus();
  if (source.value) start(0); // kept by the browser over a reload
}

open();
