// Play, as a person does: what the page draws is what the program simulates.
"use strict";
const { test, before, after } = require("node:test");
const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const { execFileSync } = require("node:child_process");
const { folder, start, stop, open, columns, saved } = require("./common.cjs");

before(start);
after(stop);

const latens = (...words) => execFileSync(process.env.LATENS, words, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
const simulated = (...words) => columns(latens("simulate", "slide", ...words));
const played = (options) => open("slide/report.html", { drawn: "#play-panels .played", ...options });
const banded = (page) => page.waitForFunction(() => document.getElementById("play-status").dataset.draws > 0);
const field = (page, name) => page.locator(`#play-settings input[type=number][data-of="${name}"]`);
const slider = (page, name) => page.locator(`#play-settings input[type=range][data-of="${name}"]`);

// The points of the line that a panel draws, in the units of its axes.
const drawn = (page, name) => page.$eval(`#play-panels .panel[data-of="${name}"] svg`, (svg) => {
  const ticks = (anchor, at) => [...svg.querySelectorAll(`text.tick[text-anchor=${anchor}]`)].map((t) => [Number(t.getAttribute(at)), Number(t.textContent)]);
  const scale = (all) => { const [a, b] = [all[0], all.at(-1)]; return (pixel) => a[1] + (pixel - a[0]) / (b[0] - a[0]) * (b[1] - a[1]); };
  const x = scale(ticks("middle", "x")), y = scale(ticks("end", "y").map(([at, v]) => [at - 3.6, v]));
  const d = svg.querySelector(".played").getAttribute("d");
  return [...d.matchAll(/[ML](\S+?) ([^ML]+)/g)].map(([, px, py]) => [x(Number(px)), y(Number(py))]);
});
// The largest distance of what is drawn from a column of the program's, in parts of the column's range.
async function distance(page, name, run) {
  const points = await drawn(page, name), values = run[`${name}.predicted`];
  assert.ok(points.length > 200, `${points.length} points`);
  const range = Math.max(...values) - Math.min(...values);
  const at = (t) => {
    const k = Math.min(Math.max(run.t.findIndex((v) => v >= t), 1), run.t.length - 1);
    const part = (t - run.t[k - 1]) / (run.t[k] - run.t[k - 1]);
    return values[k - 1] + part * (values[k] - values[k - 1]);
  };
  return Math.max(...points.map(([t, v]) => Math.abs(v - at(t)))) / range;
}
async function numbers(page) {
  return columns((await saved(page, page.locator("#play-save"))).text);
}
function same(own, unit, column, run, tolerance) {
  const [a, b] = [own[`${column} (${unit})`], run[`${column}.predicted`]];
  assert.equal(a.length, b.length);
  const range = Math.max(...b) - Math.min(...b);
  const off = Math.max(...a.map((v, k) => Math.abs(v - b[k]))) / range;
  assert.ok(off < tolerance, `${column} is ${off} of its range off`);
}

test("as learned, and from another start or with another constant, the page draws the program's simulation", async () => {
  const { page, said } = await played();
  const cases = [
    [[], async () => {}],
    [["--start", "v=0.1"], async () => { await field(page, "v").fill("0.1"); await field(page, "v").press("Enter"); }],
    [["--start", "v=0.1", "--constants", "gain=0.5"], async () => { await field(page, "gain").fill("0.5"); await field(page, "gain").press("Enter"); }],
  ];
  for (const [words, act] of cases) {
    const run = simulated("--input", "slide.csv", ...words);
    await act();
    await banded(page);
    for (const [state, unit] of [["q", "m"], ["v", "m/s"]]) {
      // a pixel is a part in 150
      assert.ok(await distance(page, state, run) < 0.01, words.join(" "));
      same(await numbers(page), unit, state, run, 1e-9);
    }
    // few draws of parameters and noise: as wide as the program's to a part
    const own = (await numbers(page))["v standard deviation (m/s)"], theirs = run["v.std"];
    const mean = (all) => all.slice(50).reduce((a, b) => a + b) / (all.length - 50);
    const ratio = mean(own) / mean(theirs);
    assert.ok(ratio > 0.6 && ratio < 1.6, `bands are ${ratio} of the program's`);
  }
  assert.deepEqual(said, []);
  await page.close();
});

test("a slider that is moved with the keys moves what is drawn, to what the program says of that value", async () => {
  const { page } = await played();
  const before = await drawn(page, "v");
  await slider(page, "gain").focus();
  for (let k = 0; k < 5; k++) await page.keyboard.press("ArrowRight");
  const value = Number(await field(page, "gain").inputValue());
  await banded(page);
  assert.ok(value > 0.3);
  assert.notDeepEqual(await drawn(page, "v"), before);
  assert.ok(await distance(page, "v", simulated("--input", "slide.csv", "--constants", `gain=${value}`)) < 0.01);
  await page.locator("#play-reset").click();
  await banded(page);
  assert.deepEqual(await drawn(page, "v"), before);
  await page.close();
});

test("inputs: a formula, what is wrong with one, a constant, and drawn by hand", async () => {
  const { page } = await played();
  const kind = page.locator("#play-inputs select"), text = page.locator("#play-inputs input[type=text]");
  await kind.selectOption("formula");
  await text.fill("0.8*sin(2*t) - max(record, 0)/2");
  await banded(page);
  const own = await numbers(page), record = columns(fs.readFileSync(path.join(folder, "slide.csv"), "utf8"));
  own["u (V)"].forEach((u, k) => assert.ok(Math.abs(u - (0.8 * Math.sin(2 * record.t[k]) - Math.max(record.u[k], 0) / 2)) < 1e-12));
  // the program, driven by the same inputs
  fs.writeFileSync(path.join(folder, "formula.csv"), `t,u\n${record.t.map((t, k) => `${t},${own["u (V)"][k]}`).join("\n")}\n`);
  same(own, "m", "q", simulated("--input", "formula.csv"), 1e-9);
  for (const [wrong, words] of [["sin(", /missing at the end/], ["foo*t", /there is no foo; there are t, record/], ["2 t", /not expected/], ["min(1)", /two values/]]) {
    await text.fill(wrong);
    assert.match(await page.locator("#play-inputs .hint").textContent(), words);
    assert.equal(await text.getAttribute("aria-invalid"), "true");
  }
  await kind.selectOption("constant");
  await page.locator("#play-inputs input[type=number]").fill("0.25");
  await page.locator("#play-inputs input[type=number]").press("Enter");
  assert.deepEqual([...new Set((await numbers(page))["u (V)"])], [0.25]);
  await kind.selectOption("drawn");
  const svg = page.locator('#play-panels .panel[data-of="u"] svg');
  await svg.scrollIntoViewIfNeeded();
  const box = await svg.boundingBox();
  await page.mouse.move(box.x + 120, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + 200, box.y + 40, { steps: 4 });
  await page.mouse.up();
  const drawnBy = (await numbers(page))["u (V)"];
  const most = Math.max(...drawnBy);
  assert.ok(drawnBy.filter((u) => u === most).length > 30, "a level is drawn");
  await page.close();
});

test("where training has not been is marked, and says so", async () => {
  const { page } = await played();
  const status = () => page.locator("#play-status").textContent();
  await banded(page);
  assert.match(await status(), /All of it lies within/);
  await field(page, "v").fill("3");
  await field(page, "v").press("Enter");
  await banded(page);
  assert.match(await status(), /Beyond what training has seen from t = 0 s on, \d/);
  assert.ok(await page.$$eval("#play-panels .beyond", (all) => all.length) >= 2);
  const said = Number((await status()).match(/on, (\S+) %/)[1]);
  latens("simulate", "slide", "--input", "slide.csv", "--start", "v=3", "-o", "fast.csv", "--force");
  const facts = JSON.parse(latens("simulate", "slide", "--input", "slide.csv", "--start", "v=3", "-o", "fast.csv", "--force", "--json"));
  assert.ok(Math.abs(said - 100 * facts.outside) < 1, `${said} ${facts.outside}`);
  await page.close();
});
