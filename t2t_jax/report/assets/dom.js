// Elements, the theme, and text for screen readers.

const SVG = "http://www.w3.org/2000/svg";
const data = JSON.parse(document.getElementById("page-data").textContent);

/** Makes an element. Children are elements or text, never HTML. */
function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Makes an element of SVG. */
function drawing(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Makes buttons of which one is pressed; `choose` gets its value. */
function choice(label, options, initial, choose) {
  const buttons = options.map(([value, text]) =>
    element("button", {
      type: "button",
      "aria-pressed": String(value === initial),
      onclick: (event) => {
        for (const other of buttons) {
          other.setAttribute("aria-pressed", String(other === event.currentTarget));
        }
        choose(value);
      },
    }, text));
  const row = element("span", { class: "choice", role: "group", "aria-label": label },
    ...buttons);
  return element("span", { class: "group" }, label, row);
}

/** Reads a text to users of screen readers. */
function announce(text) {
  document.getElementById("reader").textContent = text;
}

const redraws = [];

/** Calls `draw` now, and whenever sizes or colours change. */
function keepDrawn(draw) {
  redraws.push(draw);
  draw();
}

function redrawAll() {
  for (const draw of redraws) draw();
}

/** The colour of a custom property, such as `--accent`, as red, green and blue. */
function colorOf(property) {
  const probe = document.body.appendChild(element("span"));
  probe.style.color = `var(${property})`;
  const found = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  probe.remove();
  return found;
}

/** Makes the switch between the system's theme, light and dark. */
function startTheme() {
  const names = ["auto", "light", "dark"];
  const button = document.getElementById("theme");
  let chosen = "auto";
  const apply = () => {
    if (chosen === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    button.textContent = `Theme: ${chosen}`;
    redrawAll();
  };
  try {
    const kept = localStorage.getItem("t2t_jax-theme");
    if (names.includes(kept)) chosen = kept;
  } catch { /* Pages from a disk may have no storage. */ }
  button.hidden = false;
  button.addEventListener("click", () => {
    chosen = names[(names.indexOf(chosen) + 1) % names.length];
    try {
      localStorage.setItem("t2t_jax-theme", chosen);
    } catch { /* It is only forgotten. */ }
    apply();
  });
  apply();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
}

/** Marks the link of the section that is in view. */
function startNavigation() {
  const links = new Map([...document.querySelectorAll("nav a")].map(
    (link) => [link.hash.slice(1), link]));
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id).setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const id of links.keys()) observer.observe(document.getElementById(id));
}
