// The states over time: panels that zoom and pan together, a legend that switches series, values
// under the cursor.
const NAMES = {
  data: "measured", truth: "truth", estimate: "estimate", std: "95 % band", one_step: "one step", free_run: "free run",
};
const LEFT = ["std", "data", "estimate", "one_step", "truth"];
const RIGHT = ["data", "free_run", "truth"];

const several = data.runs?.length > 1;
const shared = (signal) => ["data", "truth"].includes(signal.what);
const key = (signal) => (several && !shared(signal) ? `${signal.run}.${signal.what}` : signal.what);
const style = (signal) => (several && !shared(signal) ? `run${signal.run % 12}` : signal.what);
const title = (signal) => (several && !shared(signal) ? `${data.runs[signal.run]} ${NAMES[signal.what]}` : NAMES[signal.what]);
const off = new Set();
const area = document.getElementById("panels");
const controls = document.getElementById("controls");
let course = null, panels = [], deviations = false, view = [0, 1], whole = [0, 1], cursor = null, waiting = false;

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; panels.forEach((p) => p.draw()); });
}
function show(low, high) {
  const least = (whole[1] - whole[0]) * 1e-6;
  const size = Math.min(Math.max(high - low, least), whole[1] - whole[0]);
  low = Math.min(Math.max(low, whole[0]), whole[1] - size);
  view = [low, low + size];
  area.dataset.view = view.join(" ");
  redraw();
}
function zoom(factor, at = (view[0] + view[1]) / 2) {
  show(at - (at - view[0]) * factor, at + (view[1] - at) * factor);
}
const pan = (part) => { const by = part * (view[1] - view[0]); show(view[0] + by, view[1] + by); };
const reset = () => show(whole[0], whole[1]);
function point(time) {
  cursor = time;
  panels.forEach((p) => p.read());
}

class Panel extends Axes {
  constructor(source, what, side) {
    const notes = [source.kind];
    if (side) notes.push(side.name);
    if (side && !several && source.errors[side.error]) notes.push(source.errors[side.error]);
    const box = html("div", { className: "panel" }, area);
    if (side === null) box.style.gridColumn = "1 / -1";
    html("small", { textContent: notes.join(" · ") }, html("h3", { textContent: source.name }, box));
    const values = html("output", {}, box);
    super(box, `${source.name} (${source.unit || "no unit"}) over time, ${notes.join(", ")}; arrow keys read values`);
    Object.assign(this, { source, values, time: source.time, input: source.kind === "input" });
    this.signals = what.flatMap((w) => source.signals.filter((s) => s.what === w));
    saving(box, side ? `${source.name}, ${side.name}` : source.name, this.svg, () => this.csv());
    this.listen();
  }

  // What deviations are taken from: the truth, else what was measured, else the first run's estimate.
  get origin() {
    if (!deviations || this.input) return null;
    for (const what of ["truth", "data", "estimate"]) {
      const signal = this.source.signals.find((s) => s.what === what);
      if (signal) return signal;
    }
    return null;
  }
  drawn(signal) {
    const from = this.origin;
    if (!from) return signal.values;
    signal.off ??= signal.values.map((v, k) => v - from.values[k]);
    return signal.off;
  }
  // of the view as it will be drawn: fingers move more often than that
  t(x) { return view[0] + (x - PAD.left) / this.inner * (view[1] - view[0]); }
  shown() { return this.signals.filter((s) => !off.has(key(s))); }

  // Samples in view, with a neighbour on each side.
  slice() {
    return [Math.max(find(this.time, view[0]) - 1, 0), Math.min(find(this.time, view[1]) + 1, this.time.length)];
  }
  // What is measured, true or estimated decides; a free run far off may leave the panel.
  scale(from, to) {
    const ends = (signals) => {
      let low = Infinity, high = -Infinity;
      for (const s of signals) {
        const values = this.drawn(s);
        for (let k = from; k < to; k++) {
          const v = values[k];
          if (Number.isFinite(v)) { if (v < low) low = v; if (v > high) high = v; }
        }
      }
      return [low, high];
    };
    const all = this.source.signals.filter((s) => s.what !== "std" && !off.has(key(s)));
    let [low, high] = ends(all.filter((s) => s.what !== "free_run"));
    if (!(low <= high)) [low, high] = ends(all);
    if (!(low <= high)) [low, high] = [0, 1];
    const size = high - low || Math.abs(high) || 1;
    const free = ends(all.filter((s) => s.what === "free_run"));
    if (free[0] <= free[1]) {
      low = Math.min(low, Math.max(free[0], low - size));
      high = Math.max(high, Math.min(free[1], high + size));
    }
    const margin = 0.07 * (high - low || size);
    return [low - margin, high + margin];
  }

  draw() {
    this.measure();
    const [from, to] = this.slice(), origin = this.origin;
    const label = origin ? `Δ${this.source.name} from ${origin.what === "data" ? "measured" : `the ${origin.what}`}` : this.source.name;
    this.lay(view, this.scale(from, to), labelled("time", data.time_unit), labelled(label, this.source.unit));
    course.gaps.forEach((gap) => this.shade(gap, "gap"));
    for (const signal of this.shown()) {
      const values = this.drawn(signal), name = `${style(signal)} of-${signal.what}`;
      if (signal.what === "std") {
        const own = this.signals.find((s) => s.what === "estimate" && s.run === signal.run);
        const middle = own && this.drawn(own);
        if (own) this.band(this.time, from, to, (k) => middle[k], (k) => 1.96 * signal.values[k], { class: `band ${several ? style(signal) : "estimate"}` });
      } else if (signal.what === "data" && !this.input) {
        this.dots(this.time, values, from, to, { class: `points ${name}` });
      } else {
        make("path", { class: `line ${name}`, d: this.stretches(values, from, to) }, this.marks);
      }
    }
    this.read();
  }
  // A line stops where the record does.
  stretches(values, from, to) {
    const held = this.input && !data.straight;
    let d = "", k = from;
    for (const gap of course.gaps) {
      const end = Math.min(find(this.time, gap[1]), to);
      if (end > k && end < to) { d += this.path(this.time, values, k, end, held); k = end; }
    }
    return d + this.path(this.time, values, k, to, held);
  }

  // Values under the cursor: those of the nearest sample that the page has.
  read() {
    const k = cursor === null ? -1 : nearest(this.time, cursor);
    if (!this.mark(k < 0 ? null : this.time[k])) return this.values.replaceChildren();
    const { unit } = this.source;
    const parts = [["t", withUnit(this.time[k], data.time_unit), this.time[k]]];
    for (const s of this.shown()) {
      if (s.what === "std") continue;
      const value = s.values[k];
      parts.push([this.input ? this.source.name : title(s), withUnit(value, unit), value]);
      const std = s.what === "estimate" && this.shown().find((o) => o.what === "std" && o.run === s.run);
      if (std) parts.push(["± std", withUnit(std.values[k], unit, 3), std.values[k]]);
    }
    read(this.values, parts);
  }
  csv() {
    const unit = this.source.unit || "–", signals = this.signals;
    const head = [labelled("t", data.time_unit), ...signals.map((s) => `${s.what === "std" ? `${several ? `${data.runs[s.run]} ` : ""}standard deviation` : title(s)} (${unit})`)];
    const rows = Array.from(this.time, (t, k) => [t, ...signals.map((s) => Number(s.values[k].toPrecision(7)))]);
    return csv(head, rows);
  }

  listen() {
    let from = null, panned = null, tapped = 0;
    const fingers = new Map();
    const calm = () => { from = panned = null; this.brush.setAttribute("visibility", "hidden"); };
    this.svg.addEventListener("pointerdown", (e) => {
      if (e.button !== 0) return;
      this.svg.setPointerCapture(e.pointerId);
      if (e.pointerType !== "touch") {
        if (e.shiftKey) panned = [this.at(e), [...view]]; else from = this.at(e);
        return;
      }
      fingers.set(e.pointerId, this.at(e));
      if (fingers.size === 1) {
        if (e.timeStamp - tapped < 350) reset();
        tapped = e.timeStamp;
        panned = view[1] - view[0] < whole[1] - whole[0] ? [this.at(e), [...view]] : null;
        point(this.t(this.at(e)));
      } else panned = null;
    });
    this.svg.addEventListener("pointermove", (e) => {
      if (fingers.size === 2 && fingers.has(e.pointerId)) return this.pinch(fingers, e);
      if (panned) {
        const by = (panned[0] - this.at(e)) / this.inner * (panned[1][1] - panned[1][0]);
        return show(panned[1][0] + by, panned[1][1] + by);
      }
      if (from !== null && Math.abs(this.at(e) - from) > 3) {
        const [a, b] = [Math.min(from, this.at(e)), Math.max(from, this.at(e))];
        set(this.brush, { x: a, y: PAD.top, width: b - a, height: HEIGHT - PAD.top - PAD.bottom, visibility: "visible" });
      }
      point(this.t(this.at(e)));
    });
    this.svg.addEventListener("pointerup", (e) => {
      fingers.delete(e.pointerId);
      const to = this.at(e);
      if (from !== null && Math.abs(to - from) > 3) show(this.t(Math.min(from, to)), this.t(Math.max(from, to)));
      calm();
    });
    this.svg.addEventListener("pointercancel", (e) => { fingers.delete(e.pointerId); calm(); });
    this.svg.addEventListener("pointerleave", (e) => { if (from === null && e.pointerType !== "touch" && document.activeElement !== this.svg) point(null); });
    this.svg.addEventListener("dblclick", reset);
    this.svg.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      zoom(Math.exp(0.002 * e.deltaY), this.t(this.at(e)));
    }, { passive: false });
    this.svg.addEventListener("focus", () => {
      panels.forEach((p) => p.values.setAttribute("aria-live", p === this ? "polite" : "off"));
      if (cursor === null) point((view[0] + view[1]) / 2);
    });
    this.svg.addEventListener("keydown", (e) => this.key(e));
  }
  // Two fingers keep the times that they hold.
  pinch(fingers, e) {
    const before = [...fingers.values()].map((x) => this.t(x));
    fingers.set(e.pointerId, this.at(e));
    const [a, b] = [...fingers.values()];
    if (Math.abs(a - b) < 10) return;
    const rate = (before[0] - before[1]) / (a - b);
    const low = before[0] - (a - PAD.left) * rate;
    if (rate > 0) show(low, low + rate * this.inner);
  }
  key(e) {
    const step = (by) => {
      const k = Math.min(Math.max(nearest(this.time, cursor ?? view[0]) + by, 0), this.time.length - 1);
      const time = this.time[k];
      if (time < view[0] || time > view[1]) pan(by > 0 ? 0.5 : -0.5);
      point(time);
    };
    const keys = {
      "+": () => zoom(0.5, cursor ?? undefined), "=": () => zoom(0.5, cursor ?? undefined),
      "-": () => zoom(2, cursor ?? undefined), 0: reset, Home: () => point(view[0]), End: () => point(view[1]),
      ArrowLeft: () => (e.shiftKey ? pan(-0.2) : step(-1)), ArrowRight: () => (e.shiftKey ? pan(0.2) : step(1)),
    };
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    keys[e.key]();
  }
}

function legend() {
  const seen = new Map();
  for (const panel of course.panels) {
    if (panel.kind === "input") continue;
    for (const s of panel.signals) if (!seen.has(key(s))) seen.set(key(s), s);
  }
  for (const [name, signal] of seen) {
    const button = html("button", { type: "button", className: "legend" }, controls);
    const swatch = make("svg", { class: "plot", viewBox: "0 0 24 10", "aria-hidden": "true" }, button);
    if (signal.what === "std") make("rect", { class: `band ${several ? style(signal) : "estimate"}`, width: 24, height: 10 }, swatch);
    else if (signal.what === "data") make("path", { class: "points data", d: "M3 5h0M12 3h0M21 6h0" }, swatch);
    else make("path", { class: `line ${style(signal)} of-${signal.what}`, d: "M0 5h24" }, swatch);
    button.append(title(signal));
    button.dataset.series = name;
    button.setAttribute("aria-pressed", String(!off.has(name)));
    button.addEventListener("click", () => {
      if (off.has(name)) off.delete(name); else off.add(name);
      button.setAttribute("aria-pressed", String(!off.has(name)));
      redraw();
    });
  }
}

function open(place) {
  course = data.courses[place];
  area.replaceChildren();
  controls.replaceChildren();
  panels = [];
  if (data.courses.length > 1) {
    const label = html("label", { textContent: "Record " }, controls);
    const choice = html("select", {}, label);
    data.courses.forEach((c, k) => html("option", { value: k, textContent: `${c.file} (${c.role})`, selected: k === place }, choice));
    choice.addEventListener("change", () => open(Number(choice.value)));
  }
  legend();
  const button = html("button", { type: "button", textContent: "Deviations", title: "Draw how far each series is from the truth; where nobody knows it from what was measured, and of a state that nobody measured from its estimate" }, controls);
  button.id = "deviations";
  button.setAttribute("aria-pressed", String(deviations));
  button.addEventListener("click", () => {
    deviations = !deviations;
    button.setAttribute("aria-pressed", String(deviations));
    redraw();
  });
  html("span", { className: "space" }, controls);
  for (const [text, name, act] of [
    ["−", "Zoom out", () => zoom(2)], ["+", "Zoom in", () => zoom(0.5)],
    ["←", "Pan left", () => pan(-0.3)], ["→", "Pan right", () => pan(0.3)], ["Whole record", "Whole record", reset],
  ]) {
    const button = html("button", { type: "button", textContent: text, title: name, onclick: act }, controls);
    button.setAttribute("aria-label", name);
  }
  for (const panel of course.panels) {
    if (typeof panel.time === "string") {
      panel.time = unpack(panel.time, Float64Array);
      panel.signals.forEach((s) => { s.values = unpack(s.values, Float32Array); });
    }
    if (panel.kind === "input") {
      panels.push(new Panel(panel, ["data"], null));
    } else {
      panels.push(new Panel(panel, LEFT, { name: "estimate and one step", error: 0 }));
      panels.push(new Panel(panel, RIGHT, { name: "free run", error: 1 }));
    }
  }
  const note = (text) => { html("p", { className: "hint", textContent: text }, area).style.gridColumn = "1 / -1"; };
  if (course.gaps.length) note("In grey stretches the record has no samples.");
  const most = Math.max(0, ...course.panels.map((p) => p.kept));
  if (most < course.samples) note(`Of ${course.samples} samples each panel holds up to ${most}: those with the least and greatest values of every short stretch, so that no spike is lost. states.csv has all.`);
  const ends = course.panels.map((p) => [p.time[0], p.time[p.time.length - 1]]);
  whole = [Math.min(...ends.map((e) => e[0])), Math.max(...ends.map((e) => e[1]))];
  cursor = null;
  reset();
}

document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", () => {
  const text = document.getElementById(button.dataset.copy);
  const selection = getSelection();
  selection.selectAllChildren(text);
  navigator.clipboard?.writeText(text.textContent).then(() => { button.textContent = "Copied"; }, () => {});
}));
if (area && data.courses.length) {
  open(0);
  new ResizeObserver(redraw).observe(area);
  addEventListener("beforeprint", () => panels.forEach((p) => p.draw()));
}
