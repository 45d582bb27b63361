// Charts of the curves of one run or of several, with one cursor and one zoom for all.

const AXES = [["step", "Steps"], ["tokens", "Tokens"], ["minutes", "Minutes"]];
const MARGIN = { left: 46, right: 10, top: 8, bottom: 24 };
const HEIGHT = 200;

/** What all charts share: the axes, the range and the cursor, in units of x. */
const view = { axis: "step", isLog: false, range: null, cursor: null };
const hidden = new Set();

function startCharts() {
  const place = document.getElementById("charts");
  if (!place) return;
  const charts = data.charts
    .map((about) => new Chart(about))
    .filter((chart) => chart.series.length);
  place.append(...charts.map((chart) => chart.root));
  const draw = () => charts.forEach((chart) => chart.draw());
  view.changed = draw;
  view.moved = () => charts.forEach((chart) => chart.drawCursor());
  document.getElementById("chart-tools").append(...tools());
  keepDrawn(draw);
  new ResizeObserver(draw).observe(place);
}

function tools() {
  const reset = element("button", { type: "button", onclick: () => zoom(null) },
    "Show all");
  view.reset = reset;
  reset.hidden = true;
  const axis = choice("Along", AXES, view.axis, (name) => {
    view.axis = name;
    view.cursor = null;
    zoom(null);
  });
  const scale = choice("Scale", [[false, "Linear"], [true, "Log"]], false, (isLog) => {
    view.isLog = isLog;
    view.changed();
  });
  const runs = data.runs.length > 1 ? data.runs.map(runSwitch) : [];
  return [axis, scale, ...runs, reset];
}

function runSwitch(run, number) {
  return element("button", {
    type: "button",
    "aria-pressed": "false",
    title: "Show or hide this run",
    onclick: (event) => {
      const isHidden = !hidden.delete(number);
      if (isHidden) hidden.add(number);
      event.currentTarget.setAttribute("aria-pressed", String(isHidden));
      view.changed();
    },
  }, element("span", { class: `key k${number % 8}` }), run.name);
}

function zoom(range) {
  view.range = range;
  view.reset.hidden = !range;
  view.changed();
}

/** The curves of one quantity: a heading, the values at the cursor, and the plot. */
class Chart {
  constructor(about) {
    this.about = about;
    this.series = data.runs.flatMap((run, number) =>
      Object.entries(run.curves[about.key] ?? {}).map(([kind, [steps, values]]) => ({
        run: number,
        kind,
        steps,
        values,
        color: data.runs.length > 1 ? number % 8 : Number(kind === "eval"),
        label: [data.runs.length > 1 ? run.name : null,
          about.kinds.length > 1 || data.runs.length === 1
            ? { train: "training", eval: "development" }[kind] : null]
          .filter(Boolean).join(", "),
      })));
    this.readout = element("p", { class: "readout" });
    this.svg = drawing("svg", { "aria-hidden": "true" });
    this.plot = element("div", {
      class: "plot", tabindex: "0", role: "img",
      onpointermove: (event) => this.move(event),
      onpointerdown: (event) => this.press(event),
      onpointerup: (event) => this.release(event),
      onpointercancel: () => { this.pressed = null; this.drawCursor(); },
      onpointerleave: () => { if (!this.pressed) this.point(null); },
      ondblclick: () => zoom(null),
      onkeydown: (event) => this.key(event),
      onblur: () => this.point(null),
    }, this.svg);
    this.root = element("div", { class: "chart", "data-key": about.key },
      element("h3", {}, about.title),
      element("span", { class: "unit" }, about.unit), this.readout, this.plot);
  }

  /** The curves that are shown, with x in units of the chosen axis. */
  curves() {
    return this.series.filter((one) => !hidden.has(one.run)).map((one) => {
      const axes = data.runs[one.run].axes;
      const xs = view.axis === "step" ? one.steps
        : one.steps.map((step) => interpolate(axes.step, axes[view.axis], step));
      return { ...one, xs };
    });
  }

  draw() {
    const width = this.plot.clientWidth;
    if (!width) return;
    this.shown = this.curves();
    const [low, high] = view.range ?? fullRange();
    this.x = makeScale(low, high, MARGIN.left, width - MARGIN.right, false);
    this.y = this.verticalScale();
    const clip = `clip-${this.about.key}`;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.marks = drawing("g");
    this.svg.replaceChildren(
      drawing("clipPath", { id: clip }, drawing("rect", {
        x: MARGIN.left - 1, y: 0, width: Math.max(0, width - MARGIN.left),
        height: HEIGHT - MARGIN.bottom + 1,
      })),
      ...this.grid(width),
      drawing("g", { "clip-path": `url(#${clip})` },
        ...this.shown.flatMap((curve) => this.paths(curve)), ...this.skips()),
      this.marks);
    this.plot.setAttribute("aria-label", this.summary());
    this.drawCursor();
  }

  verticalScale() {
    let [low, high] = [Infinity, -Infinity];
    const isLog = view.isLog && this.shown.every((one) => one.values.some((v) => v > 0));
    for (const { xs, values } of this.shown) {
      values.forEach((value, n) => {
        if (xs[n] < this.x.low || xs[n] > this.x.high || (isLog && value <= 0)) return;
        low = Math.min(low, value);
        high = Math.max(high, value);
      });
    }
    if (low > high) [low, high] = [isLog ? 0.1 : 0, 1];
    if (low === high) [low, high] = isLog ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
    const room = isLog ? (high / low) ** 0.05 : (high - low) * 0.05;
    const bottom = isLog ? low / room : low >= 0 ? Math.max(0, low - room) : low - room;
    const top = isLog ? high * room : high + room;
    this.isLog = isLog;
    return makeScale(bottom, top, HEIGHT - MARGIN.bottom, MARGIN.top, isLog);
  }

  grid(width) {
    const bottom = HEIGHT - MARGIN.bottom;
    const lines = this.y.ticks(5).flatMap((value) => {
      const y = this.y.at(value).toFixed(1);
      return [
        drawing("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right,
          y1: y, y2: y }),
        drawing("text", { x: MARGIN.left - 7, y: Number(y) + 4, "text-anchor": "end" },
          short(value)),
      ];
    });
    const labels = this.x.ticks(Math.max(2, Math.floor(width / 90))).map((value) => {
      const x = this.x.at(value);
      const anchor = x > width - 28 ? "end" : "middle";
      return drawing("text", { x: Math.min(x, width - 4), y: bottom + 17,
        "text-anchor": anchor }, short(value));
    });
    return [...lines, ...labels];
  }

  paths({ xs, values, color, kind }) {
    const points = xs.map((x, n) => [x, values[n]])
      .filter(([, value]) => !this.isLog || value > 0)
      .map(([x, value]) => [this.x.at(x).toFixed(1), this.y.at(value).toFixed(1)]);
    if (!points.length) return [];
    const isFaint = kind === "train" && data.runs.length > 1
      && this.about.kinds.length > 1;
    const path = drawing("path", {
      class: `curve k${color}${isFaint ? " faint" : ""}`, stroke: "currentColor",
      d: `M${points.map((point) => point.join(" ")).join("L")}`,
    });
    const visible = xs.filter((x) => x >= this.x.low && x <= this.x.high).length;
    if (visible > 60 || (kind === "train" && visible > 1)) return [path];
    const dots = points.map(([cx, cy]) => drawing("circle", {
      class: `k${color}`, cx, cy, r: 2.6, fill: "currentColor" }));
    return [path, ...dots];
  }

  /** Marks of skipped updates along the lower edge. */
  skips() {
    const bottom = HEIGHT - MARGIN.bottom;
    return data.runs.flatMap((run, number) => (hidden.has(number) ? [] : run.skipped)
      .map((step) => {
        const x = this.x.at(toAxis(run, step));
        return drawing("path", { class: "skip-mark",
          d: `M${x - 3.5} ${bottom}l3.5 -7l3.5 7z` },
        drawing("title", {}, `Skipped update of step ${step}`));
      }));
  }

  /** Draws what depends on the cursor, and the values there. */
  drawCursor() {
    if (!this.x) return;
    const at = view.cursor;
    const lines = [];
    if (this.pressed && Math.abs(this.pressed.to - this.pressed.from) > 3) {
      const { from, to } = this.pressed;
      lines.push(drawing("rect", { class: "brush", x: Math.min(from, to),
        y: MARGIN.top, width: Math.abs(to - from),
        height: HEIGHT - MARGIN.bottom - MARGIN.top }));
    }
    const values = this.shown.map((curve) => {
      const n = at === null ? curve.xs.length - 1 : nearest(curve.xs, at);
      return { ...curve, x: curve.xs[n], value: curve.values[n] };
    });
    if (at !== null && at >= this.x.low && at <= this.x.high) {
      const x = this.x.at(at);
      lines.push(drawing("line", { class: "cursor", x1: x, x2: x, y1: MARGIN.top,
        y2: HEIGHT - MARGIN.bottom }));
      for (const { x: there, value, color } of values) {
        if (this.isLog && value <= 0) continue;
        if (there < this.x.low || there > this.x.high) continue;
        lines.push(drawing("circle", { class: `k${color}`, cx: this.x.at(there),
          cy: this.y.at(value), r: 4, fill: "currentColor" }));
      }
    }
    this.marks.replaceChildren(...lines);
    const where = at === null ? [] : [element("span", {}, `${axisName()} ${exact(at)}`)];
    const parts = values.map(({ color, kind, label, value }) => element("span", {},
      element("span", { class: `key k${color}${kind === "eval" ? " round" : ""}` }),
      label ? `${label} ` : "", element("b", {}, exact(value))));
    this.readout.replaceChildren(...[...where, ...parts].flatMap((part) => [part, " "]));
  }

  summary() {
    const curves = this.shown.map(({ steps, values, label }) =>
      `${label || this.about.title}: ${exact(values[0])} at step ${exact(steps[0])}, `
      + `${exact(values.at(-1))} at step ${exact(steps.at(-1))}`);
    return `${this.about.title}, ${this.about.unit}. ${curves.join("; ")}.`;
  }

  pixel(event) {
    const box = this.plot.getBoundingClientRect();
    return Math.min(Math.max(event.clientX - box.left, MARGIN.left),
      box.width - MARGIN.right);
  }

  point(x) {
    view.cursor = x;
    view.moved();
  }

  move(event) {
    const pixel = this.pixel(event);
    if (this.pressed) this.pressed.to = pixel;
    const all = this.shown.flatMap((curve) => curve.xs);
    if (!all.length) return;
    const x = this.x.invert(pixel);
    const snapped = this.shown.map(({ xs }) => xs[nearest(xs, x)]);
    this.point(snapped.reduce((a, b) => (Math.abs(a - x) <= Math.abs(b - x) ? a : b)));
  }

  press(event) {
    if (event.button) return;
    const pixel = this.pixel(event);
    this.pressed = { from: pixel, to: pixel };
    this.plot.setPointerCapture(event.pointerId);
  }

  release() {
    const pressed = this.pressed;
    this.pressed = null;
    if (!pressed || Math.abs(pressed.to - pressed.from) < 6) return this.drawCursor();
    const ends = [pressed.from, pressed.to].sort((a, b) => a - b);
    return zoom(ends.map((pixel) => this.x.invert(pixel)));
  }

  key(event) {
    const [low, high] = [this.x.low, this.x.high];
    const at = view.cursor ?? (low + high) / 2;
    const keys = {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      Home: () => this.step(-Infinity),
      End: () => this.step(Infinity),
      "+": () => zoom([at - (at - low) / 2, at + (high - at) / 2]),
      "-": () => zoom(wider(low, high)),
      0: () => zoom(null),
      Escape: () => zoom(null),
    };
    const act = keys[event.key === "=" ? "+" : event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  /** Moves the cursor by so many of the visible points. */
  step(count) {
    const all = new Set(this.shown.flatMap(({ xs }) => xs));
    const visible = [...all].filter((x) => x >= this.x.low && x <= this.x.high)
      .sort((a, b) => a - b);
    if (!visible.length) return;
    const now = view.cursor === null ? visible.length - 1 : nearest(visible, view.cursor);
    const next = Math.min(Math.max(now + count, 0), visible.length - 1);
    this.point(visible[next]);
    announce(`${this.about.title}: ${this.readout.textContent}`);
  }
}

function axisName() {
  return { step: "step", tokens: "token", minutes: "minute" }[view.axis];
}

function toAxis(run, step) {
  return view.axis === "step" ? step : interpolate(run.axes.step, run.axes[view.axis], step);
}

/** The range of x of all shown runs. */
function fullRange() {
  let high = 0;
  data.runs.forEach((run, number) => {
    if (hidden.has(number)) return;
    for (const kinds of Object.values(run.curves)) {
      for (const [steps] of Object.values(kinds)) {
        high = Math.max(high, toAxis(run, steps.at(-1)));
      }
    }
  });
  return [0, high || 1];
}

/** A range of twice the width, or null where that would be all. */
function wider(low, high) {
  const [first, last] = fullRange();
  const half = (high - low) / 2;
  const range = [Math.max(first, low - half), Math.min(last, high + half)];
  return range[0] <= first && range[1] >= last ? null : range;
}
