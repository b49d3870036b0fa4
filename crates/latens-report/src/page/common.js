// What all parts of the page share: marks, numbers, axes, files to save. All parts are one scope.
const data = JSON.parse(document.getElementById("data")?.textContent ?? "{}");
const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 190, PAD = { left: 58, right: 10, top: 6, bottom: 34 };

function unpack(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Kind(bytes.buffer);
}
function make(name, attributes = {}, parent = null) {
  const node = document.createElementNS(SVG, name);
  set(node, attributes);
  if (parent) parent.append(node);
  return node;
}
function set(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
}
function html(name, properties = {}, parent = null) {
  const node = Object.assign(document.createElement(name), properties);
  if (parent) parent.append(node);
  return node;
}
// Seven digits are what the page holds.
const number = (v, digits = 7) => (Number.isFinite(v) ? String(Number(v.toPrecision(digits))) : "–");
const withUnit = (v, unit, digits = 7) => (Number.isFinite(v) && unit && unit !== "–" ? `${number(v, digits)} ${unit}` : number(v, digits));
const labelled = (name, unit) => `${name} (${unit || "–"})`;

function nice(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5].find((f) => f * power >= least) ?? 10) * power;
}
function ticks(low, high, most) {
  const step = nice((high - low) / most);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12) + 1e-300; k++) {
    const value = k * step, size = Math.max(Math.abs(value), step);
    const decimals = Math.max(0, -Math.floor(Math.log10(step)));
    const plain = size >= 1e-3 && size < 1e5;
    found.push([value, plain ? value.toFixed(decimals) : Number(value.toPrecision(6)).toExponential()]);
    if (found.length > 50) break;
  }
  return found;
}
// The first place in an increasing list with at least this value.
function find(list, value) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}
function nearest(list, value) {
  const at = find(list, value);
  if (at === 0) return 0;
  if (at === list.length) return at - 1;
  return value - list[at - 1] <= list[at] - value ? at - 1 : at;
}

// One pair of axes over time, drawn again at every change: places of values, grid, ticks, labels.
class Axes {
  constructor(box, name) {
    this.box = box;
    this.svg = make("svg", { class: "plot", tabindex: "0", role: "img", "aria-label": name });
    box.append(this.svg);
    this.back = make("g", {}, this.svg);
    const clip = make("clipPath", { id: `clip${Axes.count++}` }, this.svg);
    this.rect = make("rect", {}, clip);
    this.marks = make("g", { "clip-path": `url(#${clip.id})` }, this.svg);
    this.brush = make("rect", { class: "brush", visibility: "hidden" }, this.svg);
    this.hair = make("path", { class: "hair", visibility: "hidden" }, this.svg);
  }
  x(t) { return PAD.left + (t - this.view[0]) / (this.view[1] - this.view[0]) * this.inner; }
  t(x) { return this.view[0] + (x - PAD.left) / this.inner * (this.view[1] - this.view[0]); }
  y(v) {
    const part = (v - this.range[0]) / (this.range[1] - this.range[0]);
    return HEIGHT - PAD.bottom - Math.min(Math.max(part, -5), 6) * (HEIGHT - PAD.top - PAD.bottom);
  }
  // Where a pointer is, within the frame.
  at(event) {
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    return Math.min(Math.max(x, PAD.left), PAD.left + this.inner);
  }
  measure() {
    this.width = Math.max(this.box.clientWidth, 200);
    this.inner = this.width - PAD.left - PAD.right;
  }
  lay(view, range, xLabel, yLabel) {
    this.view = view;
    this.range = range;
    const bottom = HEIGHT - PAD.bottom, frame = { x: PAD.left, y: PAD.top, width: this.inner, height: bottom - PAD.top };
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    set(this.rect, frame);
    this.back.replaceChildren();
    for (const [value, text] of ticks(...range, 4)) {
      const y = this.y(value).toFixed(1);
      make("path", { class: "grid", d: `M${PAD.left} ${y}h${this.inner}` }, this.back);
      make("text", { class: "tick", x: PAD.left - 6, y: +y + 3.6, "text-anchor": "end" }, this.back).textContent = text;
    }
    for (const [value, text] of ticks(...view, Math.max(this.inner / 80, 2))) {
      const x = this.x(value).toFixed(1);
      make("path", { class: "grid", d: `M${x} ${PAD.top}V${bottom}` }, this.back);
      make("text", { class: "tick", x, y: bottom + 13, "text-anchor": "middle" }, this.back).textContent = text;
    }
    make("text", { class: "axis", x: PAD.left + this.inner / 2, y: HEIGHT - 5, "text-anchor": "middle" }, this.back).textContent = xLabel;
    make("text", { class: "axis", transform: `translate(11 ${(PAD.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, this.back).textContent = yLabel;
    make("rect", { class: "frame", ...frame }, this.back);
    this.marks.replaceChildren();
  }
  mark(time) {
    if (time === null || time < this.view[0] || time > this.view[1]) {
      this.hair.setAttribute("visibility", "hidden");
      return false;
    }
    set(this.hair, { d: `M${this.x(time).toFixed(1)} ${PAD.top}V${HEIGHT - PAD.bottom}`, visibility: "visible" });
    return true;
  }
  // The path of a line, of many samples the least and greatest in each pixel; with `steps` each value
  // lasts to the next.
  path(time, values, from, to, steps = false) {
    let d = "", pen = "M", last = null;
    const add = (k) => {
      const y = this.y(values[k]).toFixed(1), x = this.x(time[k]).toFixed(1);
      if (steps && pen === "L") d += `H${x}V${y}`; else d += `${pen}${x} ${y}`;
      pen = "L";
      last = k;
    };
    if (to - from > 2.5 * this.inner) {
      for (let k = from; k < to;) {
        const pixel = Math.floor(this.x(time[k]));
        let low = -1, high = -1;
        for (; k < to && Math.floor(this.x(time[k])) === pixel; k++) {
          if (!Number.isFinite(values[k])) continue;
          if (low < 0 || values[k] < values[low]) low = k;
          if (high < 0 || values[k] > values[high]) high = k;
        }
        if (low < 0) pen = "M"; else [...new Set([Math.min(low, high), Math.max(low, high)])].forEach(add);
      }
    } else {
      for (let k = from; k < to; k++) if (Number.isFinite(values[k])) add(k); else pen = "M";
    }
    return steps && last !== null && last + 1 < to ? `${d}H${this.x(time[to - 1]).toFixed(1)}` : d;
  }
  // Measured values are points: no line leads over what nobody measured. One dot for a pixel is enough.
  dots(time, values, from, to, attributes) {
    let d = "";
    const taken = new Set();
    for (let k = from; k < to; k++) {
      if (!Number.isFinite(values[k])) continue;
      const x = this.x(time[k]), y = this.y(values[k]), cell = Math.round(x) * 4096 + Math.round(y);
      if (taken.has(cell)) continue;
      taken.add(cell);
      d += `M${x.toFixed(1)} ${y.toFixed(1)}h0`;
    }
    make("path", { ...attributes, d }, this.marks);
  }
  band(time, from, to, middle, half, attributes) {
    const step = Math.max(1, Math.floor((to - from) / (2 * this.inner)));
    let up = "", down = "";
    for (let k = from; k < to; k += step) {
      let by = 0;
      for (let j = k; j < Math.min(k + step, to); j++) if (half(j) > by) by = half(j);
      const v = middle(k);
      if (!Number.isFinite(v)) continue;
      const x = this.x(time[k]).toFixed(1);
      up += `${up ? "L" : "M"}${x} ${this.y(v + by).toFixed(1)}`;
      down = `L${x} ${this.y(v - by).toFixed(1)}${down}`;
    }
    if (up) make("path", { ...attributes, d: `${up}${down}Z` }, this.marks);
  }
  shade([from, to], name) {
    const a = this.x(Math.max(from, this.view[0])), b = this.x(Math.min(to, this.view[1]));
    if (b > a) make("rect", { class: name, x: a.toFixed(1), y: PAD.top, width: Math.max(b - a, 1).toFixed(1), height: HEIGHT - PAD.top - PAD.bottom }, this.marks);
  }
}
Axes.count = 0;

// Values under the cursor in a line of text; each is a pair of a name and what is shown.
function read(output, parts) {
  output.replaceChildren(...parts.flatMap(([name, text, plain]) => {
    const shown = html("b", { textContent: text });
    shown.dataset.name = name;
    shown.dataset.value = plain;
    return [`${name} `, shown, "  "];
  }));
  output.title = output.textContent;
}

function save(name, text, type) {
  const link = html("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
const fileName = (title) => title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase() || "figure";
const cell = (v) => (typeof v === "number" ? (Number.isFinite(v) ? String(v) : "") : /[",\n]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v);
const csv = (head, rows) => [head, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";

// A drawing as a file of its own: on white, with its style.
function alone(svg) {
  const copy = svg.cloneNode(true), [, , width, height] = svg.getAttribute("viewBox").split(" ");
  copy.querySelectorAll("[visibility=hidden]").forEach((node) => node.remove());
  set(copy, { xmlns: SVG, width, height });
  ["tabindex", "data-figure"].forEach((name) => copy.removeAttribute(name));
  const style = make("style");
  style.textContent = document.getElementById("figure-style").textContent;
  copy.prepend(style, make("rect", { width, height, fill: "#ffffff" }));
  return new XMLSerializer().serializeToString(copy);
}
// Two buttons: the drawing as SVG, its numbers as CSV.
function saving(parent, title, svg, table) {
  const bar = html("div", { className: "saving" }, parent);
  for (const [kind, act] of [
    ["SVG", () => save(`${fileName(title)}.svg`, alone(svg), "image/svg+xml")],
    ["CSV", () => save(`${fileName(title)}.csv`, table(), "text/csv")],
  ]) {
    const button = html("button", { type: "button", textContent: kind, onclick: act }, bar);
    button.setAttribute("aria-label", `Save ${title} as ${kind}`);
  }
}
