// Times of a page in Chromium, in milliseconds: its first paint, and simulations of Play as a start is moved.
// Usage: LATENS_PAGES=FOLDER NODE_PATH=…/node_modules node timing.cjs PAGE   where PAGE is a page in FOLDER
"use strict";
const { start, stop, open } = require("./common.cjs");

(async () => {
  await start();
  for (let round = 0; round < 3; round++) {
    const { page } = await open(process.argv[2]);
    const status = "#play-status[data-milliseconds]";
    await page.waitForSelector(status);
    const painted = await page.evaluate(() => performance.getEntriesByType("paint")[0].startTime);
    const times = [];
    for (let k = 1; k <= 6; k++) {
      // a frame for the figures, and draws for the bands, come after it
      await page.waitForTimeout(700);
      await page.evaluate((k) => {
        const slider = document.querySelector("#play-starts input[type=range]");
        slider.value = Number(slider.value) + 0.1 * k;
        slider.dispatchEvent(new Event("input"));
      }, k);
      await page.waitForTimeout(100);
      times.push(Number(await page.locator(status).getAttribute("data-milliseconds")));
    }
    console.log(`first paint ${painted.toFixed(0)}, Play ${times.map((t) => t.toFixed(0)).join(" ")}`);
    await page.close();
  }
  await stop();
})();
