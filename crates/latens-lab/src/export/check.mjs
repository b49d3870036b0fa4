// Runs an exported model: check.mjs FOLDER.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import assert from "node:assert";

const folder = process.argv[2];
const shape = JSON.parse(readFileSync(`${folder}/shape.json`));
const model = await import(pathToFileURL(`${folder}/exported.js`));
assert.deepEqual(model.states, shape.state_names.map((name, i) => ({ name, unit: shape.state_units[i] })));
assert.equal(model.description, shape.description);
const { states: n, inputs: m } = shape;
function rows(name, width) {
  const bytes = readFileSync(`${folder}/${name}.bin`);
  const all = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8);
  return Array.from({ length: all.length / width }, (_, k) => Array.from(all.subarray(k * width, (k + 1) * width)));
}
const write = (name, rows) => writeFileSync(`${folder}/node-${name}.bin`, new Uint8Array(new Float64Array(rows.flat()).buffer));
write("values", rows("points", 1 + n + 2 * m).map(([t, ...row]) => {
  const [x, u, v] = [row.slice(0, n), row.slice(n, n + m), row.slice(n + m)];
  return [...model.f(x, u, t), ...model.step(x, u, t, v), ...model.h(x, u, t)];
}));
const driving = rows("driving", 1 + m);
const run = [model.start];
for (let k = 0; k + 1 < driving.length; k++) {
  const [t, ...u] = driving[k];
  run.push(model.step(run[k], u, t, driving[k + 1].slice(1)));
}
write("run", run);
