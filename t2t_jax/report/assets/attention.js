// Attention: small multiples of layers and heads, and the words of one of them.

const KINDS = [["encoder", "Encoder"], ["decoder", "Decoder"], ["cross", "Cross"]];
const ROW = 26; // pixels of a word, as in the style

/** Bytes of base64 as weights in [0, 1]. */
function decode(text) {
  return Float32Array.from(atob(text), (letter) => letter.charCodeAt(0) / 255);
}

function startAttention() {
  const place = document.getElementById("attention-view");
  if (place && data.attention.length) new AttentionView(place);
}

class AttentionView {
  constructor(place) {
    this.sentence = data.attention[0];
    this.kind = "cross";
    this.layer = this.sentence.maps.cross.shape[0] - 1;
    this.head = 0;
    this.word = null; // the pointed row, {side, index}
    this.heads = element("div", { class: "heads", role: "group",
      "aria-label": "Layers and heads" });
    this.words = element("div", { class: "words" });
    this.title = element("h3", {});
    const sentences = element("select", {
      "aria-label": "Sentence",
      onchange: (event) => {
        this.sentence = data.attention[event.target.value];
        this.change();
      },
    }, ...data.attention.map((one, n) => element("option", { value: n }, one.text)));
    place.append(
      element("div", { class: "tools" }, sentences,
        choice("Attention", KINDS, this.kind, (kind) => {
          this.kind = kind;
          this.change();
        })),
      element("div", { class: "viewer" }, this.heads,
        element("div", { class: "detail" }, this.title, this.words)));
    keepDrawn(() => this.change());
  }

  /** Takes over another sentence, kind or colour. */
  change() {
    const { shape, weights } = this.sentence.maps[this.kind];
    [this.numLayers, this.numHeads, this.numQueries, this.numKeys] = shape;
    this.weights = decode(weights);
    this.queries = this.kind === "encoder" ? this.sentence.source : this.sentence.target;
    this.keys = this.kind === "decoder" ? this.sentence.target : this.sentence.source;
    this.layer = Math.min(this.layer, this.numLayers - 1);
    this.head = Math.min(this.head, this.numHeads - 1);
    this.word = null;
    this.drawHeads();
    this.select();
  }

  /** The weights of a row; `head` -1 is the mean of the layer. */
  row(layer, head, query) {
    if (head < 0) {
      const rows = Array.from({ length: this.numHeads },
        (_, one) => this.row(layer, one, query));
      return rows[0].map((_, key) =>
        rows.reduce((sum, row) => sum + row[key], 0) / rows.length);
    }
    const first = ((layer * this.numHeads + head) * this.numQueries + query)
      * this.numKeys;
    return this.weights.slice(first, first + this.numKeys);
  }

  drawHeads() {
    const heads = [...Array(this.numHeads).keys(), -1];
    const width = this.numHeads > 8 ? 56 : 72;
    this.heads.style.gridTemplateColumns = `auto repeat(${heads.length}, ${width}px)`;
    const header = heads.map((head) => element("span", { class: "name" },
      head < 0 ? "mean" : `head ${head}`));
    this.maps = new Map();
    const rows = Array.from({ length: this.numLayers }, (_, layer) => [
      element("span", { class: "name" }, `layer ${layer}`),
      ...heads.map((head) => this.smallMap(layer, head)),
    ]);
    this.heads.replaceChildren(element("span"), ...header, ...rows.flat());
  }

  smallMap(layer, head) {
    const canvas = element("canvas", { width: this.numKeys, height: this.numQueries });
    const name = head < 0 ? "mean of all heads" : `head ${head}`;
    const button = element("button", {
      type: "button", "aria-label": `layer ${layer}, ${name}`,
      onclick: () => {
        [this.layer, this.head] = [layer, head];
        this.select();
      },
    }, canvas);
    this.maps.set(`${layer},${head}`, { button, canvas, layer, head });
    this.paint(this.maps.get(`${layer},${head}`));
    return button;
  }

  /** Paints a small map: darker is more; of other rows than the pointed one, faint. */
  paint({ canvas, layer, head }) {
    const context = canvas.getContext("2d");
    const image = context.createImageData(this.numKeys, this.numQueries);
    const [red, green, blue] = colorOf("--accent");
    for (let query = 0; query < this.numQueries; query += 1) {
      const isFaint = this.word?.side === "query" && this.word.index !== query;
      this.row(layer, head, query).forEach((weight, key) => {
        const isOther = this.word?.side === "key" && this.word.index !== key;
        const shade = 255 * weight ** 0.7 * (isFaint || isOther ? 0.25 : 1);
        image.data.set([red, green, blue, Math.max(shade, 8)],
          4 * (query * this.numKeys + key));
      });
    }
    context.putImageData(image, 0, 0);
  }

  /** Shows the words of the chosen head. */
  select() {
    for (const { button, layer, head } of this.maps.values()) {
      const isChosen = layer === this.layer && head === this.head;
      button.setAttribute("aria-pressed", String(isChosen));
    }
    const name = this.head < 0 ? "mean of all heads" : `head ${this.head}`;
    const [queries, keys] = {
      encoder: ["source", "source"],
      decoder: ["target", "target so far"],
      cross: ["target", "source"],
    }[this.kind];
    this.title.textContent = `Layer ${this.layer}, ${name}: what each word of the `
      + `${queries} attends to`;
    this.queryButtons = this.queries.map((label, n) => this.wordButton(label, "query", n));
    this.keyButtons = this.keys.map((label, n) => this.wordButton(label, "key", n));
    this.numbers = this.keys.map(() => element("small"));
    const list = (side, heading, rows) => element("div", { class: side },
      element("h3", {}, heading), element("ol", {}, ...rows));
    this.lines = drawing("svg", { "aria-hidden": "true" });
    this.words.replaceChildren(
      list("queries", queries,
        this.queryButtons.map((button) => element("li", {}, button))),
      element("div", { class: "between" }, element("h3", {}, "\u00a0"), this.lines),
      list("keys", keys,
        this.keyButtons.map((button, n) => element("li", {}, button, this.numbers[n]))));
    this.point(this.word);
  }

  wordButton(label, side, index) {
    const word = { side, index };
    return element("button", {
      type: "button", dir: "auto", title: label, "aria-pressed": "false",
      onpointerenter: () => this.point(word),
      onpointerleave: () => { if (this.word === word) this.point(null); },
      onfocus: () => this.point(word, true),
      onblur: () => { if (this.word === word) this.point(null); },
    }, label);
  }

  /** Shows the row or column of a word, or all lines for null. */
  point(word, isRead = false) {
    this.word = word;
    const rows = this.queries.map((_, query) => this.row(this.layer, this.head, query));
    const isShown = (query, key) => !word
      || (word.side === "query" ? word.index === query : word.index === key);
    this.queryButtons.forEach((button, n) => button.setAttribute("aria-pressed",
      String(word?.side === "query" && word.index === n)));
    this.keyButtons.forEach((button, n) => {
      const weight = word?.side === "query" ? rows[word.index][n] : 0;
      button.setAttribute("aria-pressed",
        String(word?.side === "key" && word.index === n));
      button.style.setProperty("--weight", weight.toFixed(3));
      this.numbers[n].textContent = weight >= 0.005 ? weight.toFixed(2) : "";
    });
    this.drawLines(rows, isShown);
    for (const map of this.maps.values()) this.paint(map);
    if (isRead && word.side === "query") this.read(rows[word.index], word.index);
  }

  drawLines(rows, isShown) {
    const width = this.lines.clientWidth || 200;
    const height = ROW * Math.max(this.numQueries, this.numKeys);
    this.lines.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.lines.setAttribute("height", height);
    const lines = [];
    rows.forEach((row, query) => row.forEach((weight, key) => {
      if (weight < 0.05 || !isShown(query, key)) return;
      lines.push(drawing("line", { x1: 0, y1: ROW * (query + 0.5), x2: width,
        y2: ROW * (key + 0.5), "stroke-opacity": Math.min(1, weight).toFixed(2) }));
    }));
    this.lines.replaceChildren(...lines);
  }

  read(row, query) {
    const best = [...row.keys()].sort((a, b) => row[b] - row[a]).slice(0, 3);
    const parts = best.map((key) => `${this.keys[key]} ${row[key].toFixed(2)}`);
    announce(`${this.queries[query]} attends to ${parts.join(", ")}`);
  }
}
