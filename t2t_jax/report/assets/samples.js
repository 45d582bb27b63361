// Sample translations through time: a slider over the evaluations.

function startSamples() {
  const place = document.getElementById("samples-view");
  const samples = data.samples;
  if (!place || !samples || !samples.sentences.length) return;
  const { steps, sentences } = samples;
  const shown = element("output", { for: "samples-step" });
  const cells = sentences.map(() => element("dd", { dir: "auto" }));
  const show = (n) => {
    shown.textContent = `step ${exact(steps[n])}`;
    slider.setAttribute("aria-valuetext", shown.textContent);
    sentences.forEach((sentence, k) => {
      cells[k].replaceChildren(...marked(sentence.translations[n], sentence.reference));
    });
  };
  const slider = element("input", {
    type: "range", id: "samples-step", min: 0, max: steps.length - 1, step: 1,
    value: steps.length - 1, oninput: () => show(Number(slider.value)),
  });
  const label = element("label", { for: "samples-step" }, "Evaluation");
  place.append(
    element("div", { class: "slider" }, label, slider, shown),
    ...sentences.map((sentence, k) => element("dl", { class: "sentence" },
      element("dt", {}, "source"), element("dd", { dir: "auto" }, sentence.source),
      element("dt", {}, "reference"), element("dd", { dir: "auto" }, sentence.reference),
      element("dt", {}, "translation"), cells[k])));
  show(steps.length - 1);
}

/** A translation whose words are marked where they differ from the reference. */
function marked(translation, reference) {
  if (translation === null) return [element("span", { class: "muted" }, "not translated")];
  const words = translation.split(" ");
  const isKept = common(words, reference.split(" "));
  return words.flatMap((word, n) =>
    [n ? " " : "", isKept[n] || !word ? word : element("mark", {}, word)]);
}

/** Which words of `a` belong to the longest common subsequence with `b`. */
function common(a, b) {
  const lengths = Array.from({ length: a.length + 1 },
    () => new Uint16Array(b.length + 1));
  for (let n = a.length - 1; n >= 0; n -= 1) {
    for (let k = b.length - 1; k >= 0; k -= 1) {
      lengths[n][k] = a[n] === b[k] ? lengths[n + 1][k + 1] + 1
        : Math.max(lengths[n + 1][k], lengths[n][k + 1]);
    }
  }
  const kept = a.map(() => false);
  for (let n = 0, k = 0; n < a.length && k < b.length;) {
    if (a[n] === b[k]) {
      kept[n] = true;
      n += 1;
      k += 1;
    } else if (lengths[n + 1][k] >= lengths[n][k + 1]) n += 1;
    else k += 1;
  }
  return kept;
}
