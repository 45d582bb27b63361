// Draws what is below the translation: alternatives, attention, history. All text is set
// with textContent, so that no text can become part of the page's code.

import { percent, weightsOf } from "./words.js";

export function element(name, { text, ...properties } = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

// Lists the hypotheses of a sentence as buttons.
export function drawAlternatives(list, sentence, onChoose) {
  const best = sentence.hypotheses[0].score;
  const seen = new Set();
  const items = sentence.hypotheses.flatMap((hypothesis, rank) => {
    if (seen.has(hypothesis.translation)) return [];
    seen.add(hypothesis.translation);
    const button = element(
      "button",
      { type: "button" },
      element("span", { text: hypothesis.translation || "(empty)" }),
      element("span", {
        className: "number",
        text: rank ? `\u2212${(best - hypothesis.score).toFixed(2)}` : "best",
        title: "Difference of the scores",
      }),
    );
    button.setAttribute("aria-pressed", String(rank === sentence.chosen));
    button.addEventListener("click", () => onChoose(rank));
    return [element("li", {}, button)];
  });
  list.replaceChildren(...items);
}

// Draws attention weights as a table: a row for each target word.
export function drawAttention(place, sentence) {
  const { attention } = sentence.hypotheses[0];
  if (!attention || sentence.chosen !== 0) {
    const why = attention ? "Shown for the best translation." : "Not available.";
    place.replaceChildren(element("p", { className: "quiet", text: why }));
    return;
  }
  const { sources, targets } = sentence;
  const weights = weightsOf(targets, sources, attention);
  const head = element("tr", {}, element("td"));
  head.firstChild.className = "corner";
  head.append(
    ...sources.map((word) => {
      const cell = element("th", { scope: "col" }, element("span", { text: word.text }));
      return cell;
    }),
  );
  const rows = targets.map((target, t) => {
    const row = element("tr", {}, element("th", { scope: "row", text: target.text }));
    row.dataset.target = String(t);
    row.append(
      ...sources.map((source, s) => {
        const weight = weights[t][s];
        const cell = element("td", {
          title: `${target.text} \u2190 ${source.text}: ${percent(weight)}`,
        });
        cell.dataset.source = String(s);
        cell.style.setProperty("--weight", weight.toFixed(3));
        cell.append(element("span", { className: "sr", text: percent(weight) }));
        return cell;
      }),
    );
    return row;
  });
  const caption = element("caption", {
    className: "sr",
    text: "Attention of each word of the translation to the words of the source",
  });
  place.replaceChildren(
    element("table", {}, caption, element("thead", {}, head), element("tbody", {}, ...rows)),
  );
}

// Marks a target word, and the source words that it is aligned with, in the table.
export function markAttention(place, target, sources) {
  for (const row of place.querySelectorAll("tbody tr")) {
    row.classList.toggle("row", Number(row.dataset.target) === target);
  }
  place.querySelectorAll("thead th").forEach((cell, number) => {
    cell.classList.toggle("linked", sources.has(number));
  });
}

const MOST = 30;

// The translations of this tab, the newest first.
export class History {
  constructor(list, section, onChoose) {
    this.list = list;
    this.section = section;
    this.onChoose = onChoose;
    this.items = [];
  }

  add(item) {
    const [last] = this.items;
    // A text that was typed on replaces its beginning.
    if (last && (item.text.startsWith(last.text) || last.text.startsWith(item.text))) {
      this.items.shift();
    }
    this.items = [item, ...this.items.filter((one) => one.text !== item.text)];
    this.items.length = Math.min(this.items.length, MOST);
    this.draw();
  }

  clear() {
    this.items = [];
    this.draw();
  }

  draw() {
    this.section.hidden = !this.items.length;
    const rows = this.items.map((item) => {
      const button = element(
        "button",
        { type: "button" },
        element("span", { text: item.text, dir: "auto" }),
        element("span", { text: item.translation, dir: "auto" }),
      );
      button.addEventListener("click", () => this.onChoose(item));
      return element("li", {}, button);
    });
    this.list.replaceChildren(...rows);
  }
}
