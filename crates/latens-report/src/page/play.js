// Play: the learned model, simulated in the browser by the exported JavaScript, from any start, with any
// constants and inputs.
class Play {
  constructor(given, model) {
    Object.assign(this, { given, model, n: model.states.length });
    this.weights = model.weights.flat();
    this.kept = this.weights.map((w) => [...w]);
    this.draws = unpack(given.draws, Float64Array);
    this.regions = given.regions.map((r) => ({ ...r, points: unpack(r.points, Float32Array) }));
    given.records.forEach((r) => { r.time = unpack(r.time, Float64Array); r.inputs = unpack(r.inputs, Float64Array); });
    this.status = document.getElementById("play-status");
    this.settings();
    this.choose(0);
    new ResizeObserver(() => requestAnimationFrame(() => this.paint())).observe(document.getElementById("play-panels"));
  }

  // A row with a slider and a number: both are the same value.
  row(parent, name, unit, [low, high], value, act) {
    const row = html("div", { className: "row" }, parent);
    const id = `play-${Play.rows++}`;
    html("label", { textContent: labelled(name, unit), htmlFor: id }, row);
    const slider = html("input", { type: "range", id, min: low, max: high, step: "any", value }, row);
    const field = html("input", { type: "number", step: "any" }, row);
    field.setAttribute("aria-label", `${name}${unit ? ` in ${unit}` : ""}`);
    slider.dataset.of = field.dataset.of = name;
    const put = (v) => {
      field.value = number(v, 6);
      slider.min = Math.min(low, v);
      slider.max = Math.max(high, v);
      slider.value = v;
      slider.setAttribute("aria-valuetext", withUnit(v, unit, 6));
    };
    slider.addEventListener("input", () => { const v = Number(Number(slider.value).toPrecision(6)); put(v); act(v); });
    field.addEventListener("change", () => { if (field.value !== "" && Number.isFinite(Number(field.value))) { put(Number(field.value)); act(Number(field.value)); } });
    put(value);
    return put;
  }
  settings() {
    const { given, model } = this, group = (id) => document.getElementById(id);
    const choice = document.getElementById("play-record");
    given.records.forEach((r, k) => html("option", { value: k, textContent: `${r.file} (${r.role})${r.whole ? "" : `, first ${r.samples} samples`}` }, choice));
    choice.addEventListener("change", () => this.choose(Number(choice.value)));
    this.starts = model.states.map((s, i) => this.row(group("play-starts"), s.name, s.unit, given.states[i].reach, 0, (v) => { this.start[i] = v; this.run(); }));
    this.p = [...model.learned];
    this.moved = new Set();
    this.constants = model.constants.map((c, i) => this.row(group("play-constants"), c.name, c.unit, given.constants[i].reach, model.learned[i], (v) => {
      this.p[i] = v;
      this.moved.add(i);
      this.run();
    }));
    this.driven = model.inputs.map((u, i) => this.input(group("play-inputs"), u, i));
    document.getElementById("play-reset").addEventListener("click", () => this.choose(this.place));
    document.getElementById("play-save").addEventListener("click", () => save(`${fileName(model.name)}-played.csv`, this.csv(), "text/csv"));
  }
  // How an input is made: as recorded, a constant, a formula, or drawn by hand.
  input(parent, { name, unit }, i) {
    const box = html("div", { className: "driven" }, parent), id = `play-${Play.rows++}`;
    html("label", { textContent: labelled(name, unit), htmlFor: id }, box);
    const kind = html("select", { id }, box);
    for (const [value, text] of [["record", "as recorded"], ["constant", "constant"], ["formula", "formula in t"], ["drawn", "drawn by hand"]]) html("option", { value, textContent: text }, kind);
    const field = html("input", { type: "text", spellcheck: false, hidden: true }, box);
    field.setAttribute("aria-label", `Formula of ${name}`);
    const hint = html("p", { className: "hint", hidden: true }, box);
    field.setAttribute("aria-describedby", hint.id = `${id}-hint`);
    const level = html("div", { hidden: true }, box);
    const [low, high] = this.given.inputs[i].reach, own = { kind: "record", level: (low + high) / 2 };
    const put = this.row(level, name, unit, [low, high], own.level, (v) => { own.level = v; this.run(); });
    field.value = `record + ${number((high - low) / 10, 2)}*sin(2*pi*t/${number(this.given.records[0].time.at(-1) / 10, 2)})`;
    const read = () => {
      try {
        own.formula = formula(field.value);
        hint.textContent = "t is the time, record the recorded value; sin, exp, step(t - 2), …";
        field.removeAttribute("aria-invalid");
        this.run();
      } catch (error) {
        hint.textContent = `${error.message}. The last formula that could be read is drawn.`;
        field.setAttribute("aria-invalid", "true");
      }
    };
    field.addEventListener("input", read);
    kind.addEventListener("change", () => {
      own.kind = kind.value;
      field.hidden = own.kind !== "formula";
      level.hidden = own.kind !== "constant";
      hint.hidden = !["formula", "drawn"].includes(own.kind);
      if (own.kind === "formula") return read();
      if (own.kind === "drawn") {
        hint.textContent = `Draw over ${name} below, with the mouse or a finger.`;
        own.drawn = Float64Array.from({ length: Play.CELLS }, (_, c) => this.recorded(i, Math.floor((c + 0.5) / Play.CELLS * this.time.length)));
      }
      this.run();
    });
    own.reset = () => {
      kind.value = own.kind = "record";
      field.hidden = level.hidden = hint.hidden = true;
      put(own.level);
    };
    return own;
  }
  // A record to begin with: its start, its inputs, the learned constants.
  choose(place) {
    this.place = place;
    this.record = this.given.records[place];
    this.time = this.record.time;
    this.start = [...this.record.start];
    this.start.forEach((v, i) => this.starts[i](v));
    this.p = [...this.model.learned];
    this.moved.clear();
    this.p.forEach((v, i) => this.constants[i](v));
    this.driven.forEach((d) => d.reset());
    this.learned = this.states = null;
    this.panels();
    this.run();
  }
  recorded(i, k) { return this.record.inputs[k * this.driven.length + i]; }

  inputs() {
    const m = this.driven.length, { time } = this, [first, last] = [time[0], time[time.length - 1]];
    return Array.from(time, (t, k) => {
      const row = new Array(m);
      for (let i = 0; i < m; i++) {
        const d = this.driven[i];
        if (d.kind === "constant") row[i] = d.level;
        else if (d.kind === "formula") row[i] = d.formula(t, this.recorded(i, k));
        else if (d.kind === "drawn") row[i] = d.drawn[Math.min(Math.floor((t - first) / (last - first) * Play.CELLS), Play.CELLS - 1)];
        else row[i] = this.recorded(i, k);
      }
      return row;
    });
  }
  // States over time, one row after another; `noise` is added at each sample where it is given.
  simulate(u, p, noise = null) {
    const { time, n, model } = this, out = new Float64Array(time.length * n).fill(NaN);
    let x = [...this.start];
    for (let k = 0; k < time.length; k++) {
      out.set(x, k * n);
      if (k + 1 === time.length) break;
      const gap = time[k + 1] - time[k];
      x = model.step(x, u[k], time[k], u[k + 1], p, gap);
      if (noise) for (let i = 0; i < n; i++) x[i] += noise(i, gap);
      if (!x.every(Number.isFinite)) { this.lost = time[k + 1]; break; }
    }
    return out;
  }
  outputs(states, u, p) {
    const { n, model } = this, c = model.outputs.length;
    const out = new Float64Array(u.length * c).fill(NaN);
    u.forEach((row, k) => out.set(model.h([...states.subarray(k * n, (k + 1) * n)], row, this.time[k], p), k * c));
    return out;
  }
  // Where some network meets what no training record had, as stretches of time, and what part of the run.
  outside(states, u) {
    const { n, time, regions } = this, every = Math.ceil(time.length / 2000), found = [];
    let left = 0, all = 0;
    for (let k = 0; k < time.length; k += every) {
      const x = [...states.subarray(k * n, (k + 1) * n)];
      if (!x.every(Number.isFinite)) break;
      all++;
      const calls = this.model.asked(x, u[k], time[k], this.p);
      if (!calls.some(([network, a]) => regions[network] && Play.far(regions[network], a))) continue;
      left++;
      const end = time[Math.min(k + every, time.length - 1)], last = found.at(-1);
      if (last && last[1] === time[k]) last[1] = end; else found.push([time[k], end]);
    }
    return { stretches: found, part: left / Math.max(all, 1) };
  }
  static far({ center, scale, reach, points }, a) {
    const m = a.length, z = a.map((v, j) => (v - center[j]) / scale[j]);
    for (let k = 0; k < points.length; k += m) {
      let square = 0;
      for (let j = 0; j < m; j++) square += (points[k + j] - z[j]) ** 2;
      if (square <= reach * reach) return false;
    }
    return true;
  }

  // Once a frame at the most, however fast a slider moves.
  run() {
    this.token = {};
    delete this.status.dataset.draws;
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => { this.planned = false; this.work(); });
  }
  work() {
    const begun = performance.now(), u = this.inputs(), { token } = this;
    this.lost = null;
    this.u = u;
    this.states = this.simulate(u, this.p);
    this.seen = this.outputs(this.states, u, this.p);
    this.learned ??= { states: this.states, seen: this.seen };
    this.std = null;
    this.beyond = this.outside(this.states, u);
    this.status.dataset.milliseconds = performance.now() - begun;
    this.paint();
    if (this.lost === null) setTimeout(() => this.bands(token, u), 30);
  }
  // Bands, to first order as the program's are: each draw moves constants, weights and states by a tiny part
  // of itself to either side, and the difference of both runs is scaled up again. In directions that the data
  // do not determine draws are large, and the model is not linear so far. A constant that was set by hand
  // is known.
  bands(token, u) {
    const { given } = this, { kept } = given, size = kept ? this.draws.length / kept : 0, part = 1e-5;
    const squares = { states: new Float64Array(this.states.length), seen: new Float64Array(this.seen.length) };
    let done = 0, random = 1;
    const uniform = () => { random = (Math.imul(random, 1664525) + 1013904223) >>> 0; return (random + 0.5) / 4294967296; };
    const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
    const most = [given.states.map((s) => s.most), given.outputs];
    const moved = (draw, by) => {
      const p = this.p.map((v, i) => (this.moved.has(i) ? v : v + by * draw[i])), lost = this.lost;
      let at = p.length;
      this.weights.forEach((w, j) => { for (let i = 0; i < w.length; i++) w[i] = this.kept[j][i] + by * draw[at++]; });
      const states = this.simulate(u, p, (i, gap) => by * Math.sqrt(given.process[i] * gap / this.model.dt) * normal());
      const seen = this.outputs(states, u, p);
      this.weights.forEach((w, j) => { for (let i = 0; i < w.length; i++) w[i] = this.kept[j][i]; });
      this.lost = lost;
      return { states, seen };
    };
    const one = () => {
      const draw = this.draws.subarray(done * size, (done + 1) * size), seed = random;
      const up = moved(draw, part);
      random = seed;
      const down = moved(draw, -part);
      for (const what of ["states", "seen"]) squares[what].forEach((_, k) => { squares[what][k] += ((up[what][k] - down[what][k]) / (2 * part)) ** 2; });
      done++;
    };
    const work = () => {
      if (token !== this.token || !kept) return;
      const begun = performance.now();
      while (done < kept && performance.now() - begun < 25) one();
      if (done < kept) return setTimeout(work, 0);
      const std = (sums, limits) => sums.map((s, k) => {
        const limit = limits[k % limits.length], wide = given.widening * Math.sqrt(s / done);
        return wide < limit ? wide : limit;
      });
      this.std = { states: std(squares.states, most[0]), seen: std(squares.seen, most[1]) };
      this.status.dataset.draws = done;
      this.paint();
    };
    work();
  }

  panels() {
    const area = document.getElementById("play-panels"), { model, given } = this;
    area.replaceChildren();
    const panel = (quantity, kind, of, i, columns) => new PlayPanel(this, area, quantity, kind, { of, i, columns });
    this.drawn = model.states.map((s, i) => panel(s, given.states[i].kind, "states", i, this.n));
    model.outputs.forEach((y, c) => { if (given.indirect[c]) this.drawn.push(panel(y, "measurement", "seen", c, model.outputs.length)); });
    model.inputs.forEach((u, i) => this.drawn.push(panel(u, "input", "input", i, model.inputs.length)));
  }
  paint() {
    if (!this.states) return;
    this.drawn.forEach((p) => p.draw());
    this.tell();
  }
  tell() {
    const said = [], { stretches, part } = this.beyond, unit = this.model.timeUnit;
    if (this.lost !== null) said.push(`The run leaves the finite numbers at t = ${withUnit(this.lost, unit, 4)}.`);
    if (!this.regions.length) said.push("The model calls no network: there is no region that training has seen.");
    else if (part > 0 && part <= 0.01) said.push(`All but ${number(100 * part, 2)} % of it lies within what training has seen.`);
    else if (part > 0) said.push(`Beyond what training has seen from t = ${withUnit(stretches[0][0], unit, 4)} on, ${number(100 * part, 2)} % of the run (shaded): there nobody has tested it.`);
    else said.push("All of it lies within what training has seen.");
    if (this.lost === null) said.push(!this.given.kept ? "This fit has no draws: there is no band." : this.std ? `Band: 95 % interval by ${this.given.kept} draws of the parameters.` : "The band is being computed.");
    const text = said.join(" ");
    if (this.status.textContent !== text) this.status.textContent = text;
  }
  point(time) {
    this.cursor = time;
    this.drawn.forEach((p) => p.read());
  }
  csv() {
    const { model, std, n, u, time } = this, head = [labelled("t", model.timeUnit), ...model.inputs.map((q) => labelled(q.name, q.unit))];
    model.states.forEach((s) => head.push(labelled(s.name, s.unit), `${s.name} standard deviation (${s.unit || "–"})`));
    const row = (t, k) => [t, ...u[k], ...model.states.flatMap((_, i) => [this.states[k * n + i], std ? std.states[k * n + i] : NaN])];
    return csv(head, Array.from(time, row));
  }
}
Play.rows = 0;
Play.CELLS = 200;

class PlayPanel extends Axes {
  constructor(play, area, { name, unit }, kind, which) {
    const box = html("div", { className: "panel" }, area);
    html("small", { textContent: kind }, html("h3", { textContent: name }, box));
    const values = html("output", {}, box);
    super(box, `${name} (${unit || "no unit"}) over time as played, ${kind}; arrow keys read values`);
    Object.assign(this, { play, name, unit, values, ...which });
    box.dataset.of = name;
    saving(box, `${name} as played`, this.svg, () => play.csv());
    const { svg } = this;
    let drawing = null;
    const draw = (e) => {
      const d = play.driven[this.i], part = (this.at(e) - PAD.left) / this.inner;
      const value = this.range[0] + (1 - (e.clientY - svg.getBoundingClientRect().top - PAD.top) / (HEIGHT - PAD.top - PAD.bottom)) * (this.range[1] - this.range[0]);
      const c = Math.min(Math.floor(part * Play.CELLS), Play.CELLS - 1), from = drawing ?? c;
      for (let k = Math.min(from, c); k <= Math.max(from, c); k++) d.drawn[k] = value;
      drawing = c;
      play.run();
    };
    svg.addEventListener("pointerdown", (e) => {
      if (!this.open()) return;
      svg.setPointerCapture(e.pointerId);
      this.frozen = this.range;
      draw(e);
    });
    svg.addEventListener("pointermove", (e) => { play.point(this.t(this.at(e))); if (drawing !== null) draw(e); });
    svg.addEventListener("pointerup", () => { drawing = this.frozen = null; });
    svg.addEventListener("pointerleave", () => { if (drawing === null && document.activeElement !== svg) play.point(null); });
    svg.addEventListener("focus", () => play.point(play.cursor ?? play.time[play.time.length >> 1]));
    svg.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (!by || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      const k = nearest(play.time, play.cursor ?? play.time[0]) + by;
      play.point(play.time[Math.min(Math.max(k, 0), play.time.length - 1)]);
    });
  }
  // Whether it can be drawn on.
  open() { return this.of === "input" && this.play.driven[this.i].kind === "drawn"; }
  column(rows) { return Float64Array.from({ length: this.play.time.length }, (_, k) => rows[k * this.columns + this.i]); }
  draw() {
    const { play } = this, { time } = play, input = this.of === "input";
    this.svg.classList.toggle("open", this.open());
    this.measure();
    this.line = input ? Float64Array.from(play.u, (row) => row[this.i]) : this.column(play[this.of]);
    this.before = input ? this.column(play.record.inputs) : this.column(play.learned[this.of]);
    this.std = !input && play.std ? this.column(play.std[this.of]) : null;
    const ends = [this.line, this.before].flatMap((line) => { const known = line.filter(Number.isFinite); return [known.reduce((a, b) => Math.min(a, b), Infinity), known.reduce((a, b) => Math.max(a, b), -Infinity)]; });
    if (input) ends.push(...play.given.inputs[this.i].reach);
    const [low, high] = [Math.min(...ends), Math.max(...ends)], margin = 0.08 * (high - low || Math.abs(high) || 1);
    this.lay([time[0], time[time.length - 1]], this.frozen ?? [low - margin, high + margin], labelled("time", play.model.timeUnit), labelled(this.name, this.unit));
    if (!input) play.beyond.stretches.forEach((s) => this.shade(s, "beyond"));
    const path = (values) => this.path(time, values, 0, time.length, input && !play.given.straight);
    if (this.std) this.band(time, 0, time.length, (k) => this.line[k], (k) => 1.96 * this.std[k], { class: "band free_run" });
    make("path", { class: "line bound", d: path(this.before) }, this.marks);
    make("path", { class: `line ${input ? "data" : "free_run"} played`, d: path(this.line) }, this.marks);
    this.read();
  }
  read() {
    const { play } = this, k = play.cursor === null || play.cursor === undefined ? -1 : nearest(play.time, play.cursor);
    if (!this.mark(k < 0 ? null : play.time[k])) return this.values.replaceChildren();
    const part = (name, v, digits) => [name, withUnit(v, this.unit, digits), v];
    const parts = [["t", withUnit(play.time[k], play.model.timeUnit), play.time[k]], part("played", this.line[k])];
    if (this.std) parts.push(part("± std", this.std[k], 3));
    parts.push(part(this.of === "input" ? "recorded" : "as learned", this.before[k]));
    read(this.values, parts);
  }
}
// after the first paint: nobody waits for it
if (data.play) requestAnimationFrame(() => setTimeout(() => new Play(data.play, LEARNED_MODEL), 0));
