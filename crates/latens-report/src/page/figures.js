// Figures that stand still: values under the pointer, and files to save. A figure's numbers are beside it.
const NAMELESS = { band: "95 % interval", arrows: "direction" };

function parts(label) {
  const [, name, unit] = label.match(/^(.*) \((.*)\)$/) ?? [null, label, ""];
  return { name, unit: unit === "–" ? "" : unit };
}

class Figure {
  constructor(node) {
    const { title, x, y, marks } = JSON.parse(node.querySelector("script").textContent);
    Object.assign(this, { title, axes: [x, y], node, svg: node.querySelector("svg") });
    this.marks = marks.map((mark) => ({ ...mark, x: unpack(mark.x, Float64Array), y: unpack(mark.y, Float32Array) }));
    [this.along, this.up] = [x, y].map((axis) => parts(axis.label));
    this.tip = html("output", { className: "tip" }, node);
    this.tip.setAttribute("aria-live", "off");
    saving(node, title, this.svg, () => this.csv());
    this.svg.addEventListener("pointermove", (e) => this.show(e));
    this.svg.addEventListener("pointerdown", (e) => this.show(e));
    this.svg.addEventListener("pointerleave", () => this.hide());
  }
  // A value's place in the drawing, or the value of a place.
  place(axis, value) {
    const { log, ends, places } = this.axes[axis], at = log ? Math.log10(value) : value;
    return places[0] + (at - ends[0]) / (ends[1] - ends[0]) * (places[1] - places[0]);
  }
  hide() {
    this.tip.replaceChildren();
    this.tip.classList.remove("shown");
  }
  show(event) {
    const box = this.svg.getBoundingClientRect(), scale = Number(this.svg.getAttribute("viewBox").split(" ")[2]) / box.width;
    const px = (event.clientX - box.left) * scale, py = (event.clientY - box.top) * scale;
    const [left, right] = this.axes[0].places, [bottom, top] = this.axes[1].places;
    if (px < left || px > right || py < top || py > bottom) return this.hide();
    const found = [], { unit } = this.up;
    for (const mark of this.marks) {
      const at = this.near(mark, px, py);
      if (at === null) continue;
      const v = [...mark.y.subarray(at * mark.width, (at + 1) * mark.width)];
      const name = mark.label || NAMELESS[mark.kind];
      if (mark.kind === "density") found.push(["samples here", number(v[0]), v[0]]);
      else if (mark.kind === "arrows") found.push([name, `(${number(v[1], 3)}, ${number(v[2], 3)}) of a cell`, v[1]]);
      else if (mark.kind === "band") found.push([name, `${number(v[0], 4)} … ${withUnit(v[1], unit, 4)}`, v[0]]);
      else if (mark.kind === "whiskers") found.push([name, `${number(v[0], 4)} … ${withUnit(v[1], unit, 4)}`, v[0]]);
      else if (name) found.push([name, withUnit(v[0], unit, 5), v[0]]);
      else continue;
      found.x ??= mark.x[at];
    }
    if (found.x === undefined) return this.hide();
    read(this.tip, [[this.along.name, withUnit(found.x, this.along.unit, 5), found.x], ...found]);
    this.tip.classList.add("shown");
  }
  // The sample of a mark that is meant: of lines by x alone, of dots the nearest one.
  near(mark, px, py) {
    if (mark.kind === "level") return 0;
    const flat = ["line", "band", "bars", "density"].includes(mark.kind);
    let best = null, least = flat ? 30 : 12;
    for (let k = 0; k < mark.x.length; k++) {
      const v = mark.y[k * mark.width];
      if (!Number.isFinite(v)) continue;
      const dx = this.place(0, mark.x[k]) - px;
      const dy = flat ? 0 : mark.kind === "whiskers" ? 0 : this.place(1, v) - py;
      const far = Math.hypot(dx, dy);
      if (far < least) { least = far; best = k; }
    }
    return best;
  }
  csv() {
    const rows = [];
    this.marks.forEach((mark, place) => {
      const name = mark.label || NAMELESS[mark.kind] || `${mark.kind} ${place + 1}`;
      for (let k = 0; k < Math.max(mark.x.length, 1); k++) {
        const v = [...mark.y.subarray(k * mark.width, (k + 1) * mark.width)].map((value) => Number(value.toPrecision(7)));
        rows.push([name, mark.x[k] ?? NaN, ...v, "", ""].slice(0, 5));
      }
    });
    return csv(["series", this.axes[0].label, this.axes[1].label, "upper end, or second of a pair", "third"], rows);
  }
}
document.querySelectorAll("figure:has(> script)").forEach((node) => new Figure(node));
