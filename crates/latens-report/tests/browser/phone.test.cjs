// The page for everybody: on a phone, without a mouse, with a reader of screens, and as files.
"use strict";
const { test, before, after } = require("node:test");
const assert = require("node:assert/strict");
const { start, stop, open, columns, saved } = require("./common.cjs");
const axe = require.resolve("axe-core/axe.min.js");

before(start);
after(stop);

const PAGES = ["slide/report.html", "noisy/report.html", "lost/report.html", "both.html"];

test("axe finds nothing of weight, in light and in dark", async () => {
  for (const file of PAGES) {
    for (const colorScheme of ["light", "dark"]) {
      const { page } = await open(file, { colorScheme });
      await page.addScriptTag({ path: axe }).catch(() => page.evaluate(require("node:fs").readFileSync(axe, "utf8")));
      const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
      const said = violations.map((v) => `${v.impact} ${v.id}: ${v.nodes.length}, ${v.nodes[0].html.slice(0, 160)} ${v.nodes[0].failureSummary}`);
      assert.deepEqual(said, [], `${file}, ${colorScheme}`);
      await page.close();
    }
  }
});

test("a phone: nothing is wider than the screen, gestures are named, buttons are large enough for a finger", async () => {
  for (const file of PAGES) {
    const { page } = await open(file, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    await page.waitForTimeout(300);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), file);
    assert.ok(await page.locator(".by-touch").isVisible());
    assert.ok(!(await page.locator(".by-mouse").isVisible()));
    const small = await page.$$eval("button, select, summary", (all) => all.filter((b) => b.offsetParent && b.getBoundingClientRect().height < 44).map((b) => b.textContent));
    assert.deepEqual(small, [], file);
    await page.close();
  }
});

test("two fingers zoom all panels, and a tap reads values", async () => {
  const { page } = await open("noisy/report.html", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  await page.locator("#panels svg").first().scrollIntoViewIfNeeded();
  const box = await page.locator("#panels svg").first().boundingBox();
  const touch = (type, xs) => page.evaluate(({ type, xs, y }) => {
    const svg = document.querySelector("#panels svg");
    svg.setPointerCapture = () => {};
    xs.forEach((clientX, k) => svg.dispatchEvent(new PointerEvent(type, { pointerId: k + 1, pointerType: "touch", clientX, clientY: y, bubbles: true })));
  }, { type, xs: xs.map((part) => box.x + 58 + part * (box.width - 68)), y: box.y + 60 });
  await touch("pointerdown", [0.4, 0.6]);
  await touch("pointermove", [0.2, 0.8]);
  await touch("pointerup", [0.2, 0.8]);
  const [low, high] = await page.$eval("#panels", (area) => area.dataset.view.split(" ").map(Number));
  // a third of the record of 5 s, as the fingers held it
  assert.ok(Math.abs(high - low - 5 / 3) < 0.05 && Math.abs(low + high - 5) < 0.1, `${low} ${high}`);
  assert.ok(await page.$$eval("#panels output b", (all) => all.length) > 3);
  await page.close();
});

test("headings go down one step at a time, and every control has a name", async () => {
  for (const file of PAGES) {
    const { page } = await open(file);
    const levels = await page.$$eval("h1, h2, h3, h4", (all) => all.map((h) => Number(h.tagName[1])));
    assert.equal(levels[0], 1);
    levels.reduce((before, level) => { assert.ok(level <= before + 1, `${before} ${level}`); return level; });
    const nameless = await page.$$eval("button, input, select", (all) => all.filter((c) => !(c.getAttribute("aria-label") || c.labels?.length || c.textContent.trim())).map((c) => c.outerHTML));
    assert.deepEqual(nameless, [], file);
    await page.close();
  }
});

test("a figure tells its values with units, and is saved as SVG and CSV", async () => {
  const { page } = await open("slide/report.html");
  const figure = page.locator("#tests figure").first();
  await figure.scrollIntoViewIfNeeded();
  const box = await figure.locator("svg").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const tip = await figure.locator(".tip").textContent();
  assert.match(tip, /time [\d.]+ s/);
  assert.match(tip, /95 % of the prediction \S+ … \S+ m/);
  assert.match(tip, /foreseen \S+ m/);
  await figure.hover();
  const csv = await saved(page, figure.getByRole("button", { name: /as CSV/ }));
  assert.match(csv.name, /\.csv$/);
  const [head, ...rows] = csv.text.trim().split("\n");
  assert.match(head, /^series,time \(s\),q \(m\)/);
  assert.ok(rows.filter((row) => row.startsWith("measured,")).length > 100);
  const svg = await saved(page, figure.getByRole("button", { name: /as SVG/ }));
  assert.match(svg.text, /^<svg[^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"[^>]*>.*<style>.*#0072b2/s);
  const panel = page.locator("#panels .panel").first();
  await panel.scrollIntoViewIfNeeded();
  await panel.hover();
  const states = columns((await saved(page, panel.getByRole("button", { name: /as CSV/ }))).text);
  assert.ok(states["estimate (m)"].every(Number.isFinite) && states["standard deviation (m)"].every((s) => s > 0));
  await page.close();
});

test("held inputs are steps, measured values are points, a gap is a gap", async () => {
  const { page } = await open("gappy/report.html");
  const input = await page.$eval("#panels .panel:last-of-type .line.data", (path) => path.getAttribute("d"));
  assert.match(input, /H[\d.]+V[\d.]+/);
  assert.ok(!input.includes("L"));
  assert.match(await page.$eval("#panels .points.data", (path) => path.getAttribute("d")), /^(M[\d.]+ [\d.]+h0)+$/);
  const gaps = await page.$$eval("#panels .panel:first-of-type .gap", (all) => all.length);
  assert.equal(gaps, 1);
  assert.equal((await page.$eval("#panels .line.estimate", (path) => path.getAttribute("d"))).match(/M/g).length, 2);
  await page.locator("#deviations").click();
  await page.waitForFunction(() => [...document.querySelectorAll("#panels text[transform]")].some((t) => t.textContent.startsWith("Δv from the estimate")));
  assert.ok(await page.$$eval("#panels text[transform]", (all) => all.some((t) => t.textContent.startsWith("Δq from measured"))));
  await page.close();
});
