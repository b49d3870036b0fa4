// The states over time: panels that zoom and pan together, a legend that switches series, values
// under the cursor. All numbers are in the page.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const NAMES = {
    data: "data", truth: "truth", estimate: "estimate", std: "95 % band", one_step: "one step", free_run: "free run",
  };
  const LEFT = ["std", "data", "estimate", "one_step", "truth"];
  const RIGHT = ["data", "free_run", "truth"];
  const HEIGHT = 190, PAD = { left: 58, right: 10, top: 6, bottom: 34 };

  function unpack(text, Kind) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Kind(bytes.buffer);
  }
  function make(name, attributes = {}, parent = null) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (parent) parent.append(node);
    return node;
  }
  function html(name, properties = {}, parent = null) {
    const node = Object.assign(document.createElement(name), properties);
    if (parent) parent.append(node);
    return node;
  }
  // Seven digits are what the page holds.
  const number = (v) => (Number.isFinite(v) ? String(Number(v.toPrecision(7))) : "–");

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

  const several = data.runs.length > 1;
  const key = (signal) => (several && !["data", "truth"].includes(signal.what)
    ? `${signal.run}.${signal.what}` : signal.what);
  const style = (signal) => (several && !["data", "truth"].includes(signal.what) ? `run${signal.run % 12}` : signal.what);
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
    let size = Math.min(Math.max(high - low, least), whole[1] - whole[0]);
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

  class Panel {
    constructor(source, what, side) {
      this.source = source;
      this.time = source.time;
      this.box = html("div", { className: "panel" }, area);
      if (side === null) this.box.style.gridColumn = "1 / -1";
      const title = html("h3", { textContent: source.name }, this.box);
      const notes = [source.kind];
      if (side) notes.push(side.name);
      if (side && !several && source.errors[side.error]) notes.push(source.errors[side.error]);
      html("small", { textContent: notes.join(" · ") }, title);
      this.signals = what.flatMap((w) => source.signals.filter((s) => s.what === w));
      this.values = html("output", {}, this.box);
      this.svg = make("svg", {
        class: "plot", tabindex: "0", role: "img",
        "aria-label": `${source.name} (${source.unit || "no unit"}) over time, ${notes.join(", ")}; arrow keys read values`,
      });
      this.box.append(this.svg);
      this.axes = make("g", {}, this.svg);
      this.clip = make("clipPath", { id: `clip${panels.length}` }, this.svg);
      this.rect = make("rect", {}, this.clip);
      this.marks = make("g", { "clip-path": `url(#clip${panels.length})` }, this.svg);
      this.brush = make("rect", { class: "brush", visibility: "hidden" }, this.svg);
      this.hair = make("path", { class: "hair", visibility: "hidden" }, this.svg);
      this.listen();
    }

    x(t) { return PAD.left + (t - view[0]) / (view[1] - view[0]) * this.inner; }
    t(x) { return view[0] + (x - PAD.left) / this.inner * (view[1] - view[0]); }
    y(v) {
      const part = (v - this.range[0]) / (this.range[1] - this.range[0]);
      return HEIGHT - PAD.bottom - Math.min(Math.max(part, -5), 6) * (HEIGHT - PAD.top - PAD.bottom);
    }
    // What is drawn: values, or how far they are from the truth, where it is not known from the data.
    drawn(signal) {
      const from = deviations && (this.source.signals.find((s) => s.what === "truth") ?? this.source.signals.find((s) => s.what === "data"));
      if (!from || this.source.kind === "input") return signal.values;
      signal.off ??= signal.values.map((v, k) => v - from.values[k]);
      return signal.off;
    }
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
      this.range = [low - margin, high + margin];
    }

    draw() {
      const width = Math.max(this.box.clientWidth, 200);
      this.inner = width - PAD.left - PAD.right;
      this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      const [from, to] = this.slice();
      this.scale(from, to);
      const bottom = HEIGHT - PAD.bottom;
      for (const [k, v] of Object.entries({ x: PAD.left, y: PAD.top, width: this.inner, height: bottom - PAD.top })) this.rect.setAttribute(k, v);
      this.axes.replaceChildren();
      for (const [value, text] of ticks(...this.range, 4)) {
        const y = this.y(value).toFixed(1);
        make("path", { class: "grid", d: `M${PAD.left} ${y}h${this.inner}` }, this.axes);
        make("text", { class: "tick", x: PAD.left - 6, y: +y + 3.6, "text-anchor": "end" }, this.axes).textContent = text;
      }
      for (const [value, text] of ticks(...view, Math.max(this.inner / 80, 2))) {
        const x = this.x(value).toFixed(1);
        make("path", { class: "grid", d: `M${x} ${PAD.top}V${bottom}` }, this.axes);
        make("text", { class: "tick", x, y: bottom + 13, "text-anchor": "middle" }, this.axes).textContent = text;
      }
      const unit = (name, unit) => `${name} (${unit || "–"})`;
      make("text", { class: "axis", x: PAD.left + this.inner / 2, y: HEIGHT - 5, "text-anchor": "middle" }, this.axes)
        .textContent = unit("time", data.time_unit);
      make("text", { class: "axis", transform: `translate(11 ${(PAD.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, this.axes)
        .textContent = unit(deviations && this.source.kind !== "input" ? `Δ${this.source.name}` : this.source.name, this.source.unit);
      make("rect", { class: "frame", x: PAD.left, y: PAD.top, width: this.inner, height: bottom - PAD.top }, this.axes);
      this.marks.replaceChildren();
      for (const signal of this.shown()) {
        if (signal.what === "std") this.band(signal, from, to);
        else this.line(signal, from, to);
      }
      this.read();
    }

    // A line, of many samples the least and greatest in each pixel; lone samples as dots.
    line(signal, from, to) {
      const { time } = this, values = this.drawn(signal);
      let d = "", pen = "M";
      const lone = [];
      const many = to - from > 2.5 * this.inner;
      if (many) {
        let k = from;
        while (k < to) {
          const pixel = Math.floor(this.x(time[k]));
          let low = -1, high = -1, last = k;
          for (; k < to && Math.floor(this.x(time[k])) === pixel; k++) {
            if (!Number.isFinite(values[k])) continue;
            if (low < 0 || values[k] < values[low]) low = k;
            if (high < 0 || values[k] > values[high]) high = k;
            last = k;
          }
          if (low < 0) { pen = "M"; continue; }
          for (const i of low === high ? [low] : low < high ? [low, high] : [high, low]) {
            d += `${pen}${this.x(time[i]).toFixed(1)} ${this.y(values[i]).toFixed(1)}`;
            pen = "L";
          }
        }
      } else {
        const known = (k) => k >= from && k < to && Number.isFinite(values[k]);
        const spaced = this.inner / Math.max(to - from, 1) > 7;
        for (let k = from; k < to; k++) {
          if (!known(k)) { pen = "M"; continue; }
          d += `${pen}${this.x(time[k]).toFixed(1)} ${this.y(values[k]).toFixed(1)}`;
          pen = "L";
          if ((!known(k - 1) && !known(k + 1)) || (spaced && signal.what === "data")) lone.push(k);
        }
      }
      make("path", { class: `line ${style(signal)} of-${signal.what}`, d }, this.marks);
      if (lone.length) {
        const group = make("g", { class: `dots ${style(signal)}` }, this.marks);
        for (const k of lone) make("circle", { cx: this.x(time[k]).toFixed(1), cy: this.y(values[k]).toFixed(1), r: 1.7 }, group);
      }
    }

    band(signal, from, to) {
      const own = this.signals.find((s) => s.what === "estimate" && s.run === signal.run);
      if (!own) return;
      const values = this.drawn(own);
      const step = Math.max(1, Math.floor((to - from) / (2 * this.inner)));
      let up = "", down = "";
      for (let k = from; k < to; k += step) {
        let by = 0;
        for (let j = k; j < Math.min(k + step, to); j++) if (signal.values[j] > by) by = signal.values[j];
        if (!Number.isFinite(values[k])) continue;
        const x = this.x(this.time[k]).toFixed(1), v = values[k];
        up += `${up ? "L" : "M"}${x} ${this.y(v + 1.96 * by).toFixed(1)}`;
        down = `L${x} ${this.y(v - 1.96 * by).toFixed(1)}${down}`;
      }
      make("path", { class: `band ${several ? style(signal) : "estimate"}`, d: up + down + "Z" }, this.marks);
    }

    // Values under the cursor: those of the nearest sample that the page has.
    read() {
      if (cursor === null || cursor < view[0] || cursor > view[1]) {
        this.hair.setAttribute("visibility", "hidden");
        this.values.replaceChildren();
        return;
      }
      const k = nearest(this.time, cursor), x = this.x(this.time[k]).toFixed(1);
      this.hair.setAttribute("d", `M${x} ${PAD.top}V${HEIGHT - PAD.bottom}`);
      this.hair.setAttribute("visibility", "visible");
      const parts = [["t", this.time[k]]];
      for (const s of this.shown()) {
        if (s.what === "std") continue;
        if (this.source.kind === "input") parts.push([this.source.name, s.values[k]]);
        else parts.push([several && !["data", "truth"].includes(s.what) ? `${data.runs[s.run]} ${NAMES[s.what]}` : NAMES[s.what], s.values[k]]);
        const std = s.what === "estimate" && this.shown().find((o) => o.what === "std" && o.run === s.run);
        if (std) parts.push(["±", Number(std.values[k].toPrecision(3))]);
      }
      this.values.replaceChildren(...parts.flatMap(([name, value]) => {
        const shown = html("b", { textContent: number(value) });
        shown.dataset.name = name;
        return [`${name} `, shown, "  "];
      }));
      this.values.title = this.values.textContent;
    }

    listen() {
      let from = null, panned = null;
      const at = (e) => {
        const x = e.clientX - this.svg.getBoundingClientRect().left;
        return Math.min(Math.max(x, PAD.left), PAD.left + this.inner);
      };
      this.svg.addEventListener("pointerdown", (e) => {
        if (e.button !== 0 || e.pointerType === "touch") return;
        this.svg.setPointerCapture(e.pointerId);
        if (e.shiftKey) panned = [at(e), [...view]]; else from = at(e);
      });
      this.svg.addEventListener("pointermove", (e) => {
        if (panned) {
          const by = (panned[0] - at(e)) / this.inner * (panned[1][1] - panned[1][0]);
          show(panned[1][0] + by, panned[1][1] + by);
          return;
        }
        if (from !== null && Math.abs(at(e) - from) > 3) {
          const [a, b] = [Math.min(from, at(e)), Math.max(from, at(e))];
          for (const [k, v] of Object.entries({ x: a, y: PAD.top, width: b - a, height: HEIGHT - PAD.top - PAD.bottom, visibility: "visible" })) this.brush.setAttribute(k, v);
        }
        point(this.t(at(e)));
      });
      const end = (e) => {
        const to = at(e);
        if (from !== null && Math.abs(to - from) > 3) show(this.t(Math.min(from, to)), this.t(Math.max(from, to)));
        from = panned = null;
        this.brush.setAttribute("visibility", "hidden");
      };
      this.svg.addEventListener("pointerup", end);
      this.svg.addEventListener("pointercancel", () => { from = panned = null; this.brush.setAttribute("visibility", "hidden"); });
      this.svg.addEventListener("pointerleave", () => { if (from === null && document.activeElement !== this.svg) point(null); });
      this.svg.addEventListener("dblclick", reset);
      this.svg.addEventListener("wheel", (e) => {
        if (!e.ctrlKey && !e.metaKey) return;
        e.preventDefault();
        zoom(Math.exp(0.002 * e.deltaY), this.t(at(e)));
      }, { passive: false });
      this.svg.addEventListener("focus", () => {
        panels.forEach((p) => p.values.setAttribute("aria-live", p === this ? "polite" : "off"));
        if (cursor === null) point((view[0] + view[1]) / 2);
      });
      this.svg.addEventListener("keydown", (e) => {
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
      });
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
      else make("path", { class: `line ${style(signal)} of-${signal.what}`, d: "M0 5h24" }, swatch);
      const own = several && !["data", "truth"].includes(signal.what) ? `${data.runs[signal.run]} ` : "";
      button.append(own + NAMES[signal.what]);
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
    const button = html("button", { type: "button", textContent: "Deviations", title: "Draw how far each series is from the truth, or from the data where the truth is not known" }, controls);
    button.id = "deviations";
    button.setAttribute("aria-pressed", String(deviations));
    button.addEventListener("click", () => {
      deviations = !deviations;
      button.setAttribute("aria-pressed", String(deviations));
      redraw();
    });
    html("span", { className: "gap" }, controls);
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
    const most = Math.max(0, ...course.panels.map((p) => p.kept));
    if (most < course.samples) {
      const note = html("p", { className: "hint" }, area);
      note.style.gridColumn = "1 / -1";
      note.textContent = `Of ${course.samples} samples each panel holds up to ${most}: those with the least and greatest values of every short stretch, so that no spike is lost. states.csv has all.`;
    }
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
  if (data.courses.length) {
    open(0);
    new ResizeObserver(redraw).observe(area);
    addEventListener("beforeprint", () => panels.forEach((p) => p.draw()));
  }
})();
