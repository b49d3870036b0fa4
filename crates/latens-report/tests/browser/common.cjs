// What the tests of the page share: a browser without a network, pages from disk, files of numbers.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { chromium } = require("playwright-core");

const folder = process.env.LATENS_PAGES;
let browser = null;
const start = async () => {
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
};
const stop = () => browser.close();

// Opens a page from disk; whatever it asks for or complains of is kept.
async function open(file, { drawn = "#panels svg .line", ...options } = {}) {
  const page = await browser.newPage({ viewport: { width: 1360, height: 900 }, ...options });
  // a busy machine is slow, not wrong
  page.setDefaultTimeout(180000);
  const asked = [], said = [];
  page.on("request", (request) => asked.push(request.url()));
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  const url = `file://${path.join(folder, file)}`;
  await page.goto(url);
  await page.waitForSelector(drawn);
  return { page, url, asked, said };
}

// The columns of a CSV text by name.
function columns(text) {
  const [head, ...lines] = text.trim().split("\n");
  const rows = lines.map((line) => line.split(",").map((cell) => (cell === "" ? NaN : Number(cell))));
  return Object.fromEntries(head.split(",").map((name, k) => [name, rows.map((row) => row[k])]));
}
const table = (file) => columns(fs.readFileSync(path.join(folder, file), "utf8"));

// What a click saves, as text.
async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
  return { name: download.suggestedFilename(), text: fs.readFileSync(await download.path(), "utf8") };
}

module.exports = { folder, start, stop, open, columns, table, saved };
