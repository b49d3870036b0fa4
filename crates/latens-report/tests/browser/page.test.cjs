// The page as a person meets it, in Chromium without a network.
"use strict";
const { test, before, after } = require("node:test");
const assert = require("node:assert/strict");
const path = require("node:path");
const { folder, start, stop, open, table } = require("./common.cjs");

before(start);
after(stop);

const axis = (page) => page.$$eval("#panels .panel svg", (all) => all.map((svg) => {
  const ticks = [...svg.querySelectorAll("text.tick[text-anchor=middle]")];
  return ticks.map((tick) => tick.textContent).join(" ");
}));

async function drag(page, panel, from, to, modifier) {
  const svg = (await page.$$("#panels .panel svg"))[panel];
  await svg.scrollIntoViewIfNeeded();
  const box = await svg.boundingBox();
  const y = box.y + box.height / 2, x = (part) => box.x + 58 + part * (box.width - 68);
  if (modifier) await page.keyboard.down(modifier);
  await page.mouse.move(x(from), y);
  await page.mouse.down();
  await page.mouse.move(x((from + to) / 2), y);
  await page.mouse.move(x(to), y);
  await page.mouse.up();
  if (modifier) await page.keyboard.up(modifier);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}
const view = (page) => page.$eval("#panels", (area) => area.dataset.view.split(" ").map(Number));

test("opens from disk, says nothing, asks nobody", async () => {
  for (const file of ["noisy/report.html", "slide/report.html", "cut/report.html", "lost/report.html", "both.html"]) {
    const { page, url, asked, said } = await open(file);
    assert.deepEqual(asked.filter((one) => !one.startsWith("data:")), [url], file);
    assert.deepEqual(said, [], file);
    await page.close();
  }
});

test("everything is there, in its order", async () => {
  const { page } = await open("noisy/report.html");
  const ids = await page.$$eval("main > section", (all) => all.map((section) => section.id));
  assert.deepEqual(ids, ["verdict", "tests", "equation", "play", "states", "innovations", "identifiability", "convergence", "scores", "repeat"]);
  assert.equal(await page.$$eval("#verdict .sentence", (all) => all.length), 3);
  // the test is drawn: the channel, and what is left of it
  assert.equal(await page.$$eval("#tests figure svg", (all) => all.length), 2);
  // every drawing has axes with units, and a text for who cannot see it
  for (const svg of await page.$$("figure svg, .panel svg")) {
    const labels = await svg.$$eval("text.axis", (all) => all.map((text) => text.textContent));
    assert.equal(labels.length, 2);
    for (const label of labels) assert.match(label, /\(.+\)/);
    assert.ok((await svg.getAttribute("aria-label")).length > 10);
  }
  await page.close();
});

test("zooming one panel zooms the others", async () => {
  const { page } = await open("noisy/report.html");
  const before = await axis(page);
  assert.ok(before.length >= 4 && new Set(before).size === 1);
  await drag(page, 2, 0.2, 0.4);
  const [low, high] = await view(page);
  assert.ok(Math.abs(low - 1) < 0.05 && Math.abs(high - 2) < 0.05, `${low} ${high}`);
  const zoomed = await axis(page);
  assert.notEqual(zoomed[0], before[0]);
  assert.equal(new Set(zoomed).size, 1);
  await drag(page, 0, 0.5, 0.4, "Shift");
  const panned = await view(page);
  assert.ok(Math.abs(panned[0] - low - 0.1) < 0.02, `${panned}`);
  await (await page.$$("#panels .panel svg"))[1].focus();
  await page.keyboard.press("0");
  assert.deepEqual(await view(page), [0, 5]);
  await page.keyboard.press("+");
  assert.equal((await view(page)).reduce((a, b) => b - a), 2.5);
  await page.close();
});

test("the legend switches a series in all panels", async () => {
  const { page } = await open("noisy/report.html");
  const lines = (name) => page.$$eval(`#panels .line.${name}`, (all) => all.length);
  const button = page.locator("button[data-series=free_run]");
  assert.equal(await lines("free_run"), 2);
  await button.click();
  assert.equal(await button.getAttribute("aria-pressed"), "false");
  await page.waitForFunction(() => !document.querySelector("#panels .line.free_run"));
  assert.equal(await lines("estimate"), 2);
  await button.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("#panels .line.free_run").length === 2);
  await page.close();
});

test("deviations are drawn from the truth", async () => {
  const { page } = await open("noisy/report.html");
  const ticks = () => page.$$eval("#panels .panel:nth-of-type(4) svg text.tick[text-anchor=end]", (all) => all.map((t) => Math.abs(Number(t.textContent))));
  assert.ok(Math.max(...await ticks()) >= 0.5);
  await page.locator("#deviations").click();
  await page.waitForFunction(() => document.querySelector("#panels .axis:last-of-type, #panels text[transform]").textContent.startsWith("Δ"));
  // the velocity goes from −1 to 1 and is found to a percent
  assert.ok(Math.max(...await ticks()) < 0.1);
  await page.close();
});

test("values under the cursor are those of the files", async () => {
  const { page } = await open("noisy/report.html");
  const states = table("noisy/states.csv"), record = table("record.csv");
  const svgs = await page.$$("#panels .panel svg");
  for (const part of [0.13, 0.5, 0.87]) {
    await svgs[0].scrollIntoViewIfNeeded();
    const box = await svgs[0].boundingBox();
    await page.mouse.move(box.x + 58 + part * (box.width - 68), box.y + 60);
    const read = await page.$$eval("#panels .panel", (all) => all.map((panel) => Object.fromEntries(
      [...panel.querySelectorAll("output b")].map((b) => [b.dataset.name, Number(b.dataset.value)]))));
    const same = (shown, value) => assert.ok(Math.abs(shown - value) <= 1e-6 * Math.max(Math.abs(value), 1e-30), `${shown} ${value}`);
    for (const [panel, state] of [[0, "z"], [1, "z"], [2, "v"], [3, "v"]]) {
      const row = states.t.findIndex((t) => Math.abs(t - read[panel].t) < 1e-9);
      assert.ok(row >= 0, `no sample at ${read[panel].t}`);
      same(read[panel].truth, states[`truth_${state}`][row]);
      if (panel % 2) same(read[panel]["free run"], states[`${state}.free_run`][row]);
      else {
        same(read[panel].estimate, states[`${state}.smoothed`][row]);
        same(read[panel]["± std"], states[`${state}.std`][row]);
        same(read[panel]["one step"], states[`${state}.one_step`][row]);
      }
      if (state === "z") same(read[panel].measured, record.z[row]);
    }
  }
  await page.close();
});

test("a run that was stopped or diverged says so first", async () => {
  const said = { "cut/report.html": [/not finished: it was stopped/], "lost/report.html": [/failed/, /diverged/] };
  for (const [file, words] of Object.entries(said)) {
    const { page } = await open(file);
    const first = await page.$$eval("main p", (all) => all.map((p) => [p.getAttribute("role"), p.textContent]));
    words.forEach((word, k) => {
      assert.equal(first[k][0], "alert", file);
      assert.match(first[k][1], word);
    });
    await page.close();
  }
  const { page } = await open("noisy/report.html");
  assert.equal(await page.$("main [role=alert]"), null);
  await page.close();
});

test("light, dark and paper", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page } = await open("noisy/report.html", { colorScheme });
    const colours = await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      return [style.backgroundColor, style.color];
    });
    const light = colours.map((c) => c.match(/\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0));
    assert.ok(colorScheme === "light" ? light[0] > 600 && light[1] < 200 : light[0] < 200 && light[1] > 600, `${colours}`);
    await page.screenshot({ path: path.join(folder, `${colorScheme}.png`), fullPage: true });
    await page.emulateMedia({ media: "print" });
    const paper = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    assert.equal(paper, "rgb(255, 255, 255)");
    await page.close();
  }
});

test("several runs: a table first, then pictures in which they are told apart", async () => {
  const { page } = await open("both.html");
  const ids = await page.$$eval("main > section", (all) => all.map((section) => section.id));
  assert.deepEqual(ids.slice(0, 3), ["comparison", "verdict-1", "verdict-2"]);
  const rows = await page.$$eval("#comparison table tr", (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.deepEqual(rows[0].slice(1), ["noisy", "cut"]);
  const row = (name) => rows.find((cells) => cells[0].startsWith(name));
  assert.match(row("z other.csv")[1], /%$/);
  assert.equal(row("z other.csv")[2], "not in it");
  assert.match(row("ln p(y)")[1], /^-?[\d.]+$/);
  assert.match(row("solver, seed")[2], /batch, 2/);
  const dashes = [];
  for (const run of [0, 1]) {
    assert.ok(await page.$$eval(`#panels .line.run${run}`, (all) => all.length) >= 4);
    dashes.push(await page.$eval(`#panels .line.run${run}.of-free_run`, (line) => getComputedStyle(line).strokeDasharray));
  }
  assert.notEqual(dashes[0], dashes[1]);
  await page.close();
});

test("the page of a grid: tables, figures with axes and texts, light, dark and paper", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page, url, asked, said } = await open("grid/reproduce.html", { colorScheme, drawn: "figure svg" });
    assert.deepEqual(asked.filter((one) => !one.startsWith("data:")), [url]);
    assert.deepEqual(said, []);
    const ids = await page.$$eval("main > section", (all) => all.map((section) => section.id));
    assert.deepEqual(ids, ["result", "table", "tests", "harmonic-oscillator", "cost", "notes"]);
    // here and in the paper
    assert.deepEqual(await page.$$eval("#table .best", (all) => all.length), 2);
    for (const caption of await page.$$eval("table", (all) => all.map((table) => table.caption.textContent))) assert.ok(caption.length > 10);
    for (const svg of await page.$$("figure svg")) {
      const labels = await svg.$$eval("text.axis", (all) => all.map((text) => text.textContent));
      assert.equal(labels.length, 2);
      for (const label of labels) assert.match(label, /\(.+\)/);
      assert.ok((await svg.getAttribute("aria-label")).length > 10);
    }
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.screenshot({ path: path.join(folder, `grid-${colorScheme}.png`), fullPage: true });
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), "rgb(255, 255, 255)");
    await page.close();
  }
});
