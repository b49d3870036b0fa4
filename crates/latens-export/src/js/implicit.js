
const solver = @CONSTANTS@;

/** The solution of a x = b, with a row by row; undefined where a has no inverse. */
function solve(a, b) {
  const n = b.length;
  for (let c = 0; c < n; c++) {
    let pivot = c;
    for (let i = c; i < n; i++) if (!(Math.abs(a[i][c]) < Math.abs(a[pivot][c]))) pivot = i;
    if (!(Math.abs(a[pivot][c]) > 1e-300)) return undefined;
    [a[pivot], a[c]] = [a[c], a[pivot]];
    [b[pivot], b[c]] = [b[c], b[pivot]];
    for (let i = c + 1; i < n; i++) {
      const factor = a[i][c] / a[c][c];
      for (let j = c; j < n; j++) a[i][j] -= factor * a[c][j];
      b[i] -= factor * b[c];
    }
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

/** I − length f_x by differences: the matrix leads Newton's method to its solution and does not enter it. */
function newtonMatrix(x, u, t, p, f, length) {
  const a = x.map((_, i) => x.map((_, j) => (i === j ? 1 : 0)));
  for (let j = 0; j < x.length; j++) {
    const moved = x.slice();
    moved[j] += 1.5e-8 * (Math.abs(x[j]) + solver.sizes[j]);
    const change = derivative(moved, u, t, p).map((v, i) => (v - f[i]) / (moved[j] - x[j]));
    for (let i = 0; i < x.length; i++) a[i][j] -= length * change[i];
  }
  return a;
}

/** All stages of a step; undefined where there is no solution. */
function solveStages(x, held, t, d, p) {
  const length = d * solver.gamma;
  const z = [];
  let matrix;
  for (let s = 0; s < solver.nodes.length; s++) {
    const base = x.map((v, i) => solver.lower[s].reduce((sum, a, j) => sum + a * z[j][i], v));
    const time = t + solver.nodes[s] * d;
    const u = held(time);
    let own = s > 0 ? z[s - 1].slice() : x.map(() => 0);
    let largest = Infinity;
    for (let k = 0; k < solver.iterations && largest > solver.converged; k++) {
      const at = base.map((v, i) => v + own[i]);
      const f = derivative(at, u, time, p);
      matrix = () => newtonMatrix(at, u, time, p, f, length);
      const change = solve(matrix(), f.map((v, i) => length * v - own[i]));
      if (!change || !change.every(Number.isFinite)) return undefined;
      own = own.map((v, i) => v + change[i]);
      largest = Math.max(...change.map((c, i) => Math.abs(c) / (Math.abs(at[i]) + solver.sizes[i])));
    }
    if (!(largest <= solver.converged)) return undefined;
    z.push(own);
  }
  return { z, matrix, next: x.map((v, i) => solver.weights.reduce((sum, b, s) => sum + b * z[s][i], v)) };
}

/** Tries a step: where it leads, and the error over the tolerance; undefined where there is no solution. */
function attempt(x, held, t, d, p) {
  const whole = solveStages(x, held, t, d, p);
  if (!whole || !solver.tolerance) return whole && { next: whole.next, error: 0 };
  let next = whole.next;
  let errors;
  if (solver.errors) {
    const sum = x.map((_, i) => solver.errors.reduce((sum, e, s) => sum + e * whole.z[s][i], 0));
    errors = solve(whole.matrix(), sum);
  } else {
    const first = solveStages(x, held, t, d / 2, p);
    const second = first && solveStages(first.next, held, t + d / 2, d / 2, p);
    if (!second) return undefined;
    next = second.next;
    errors = next.map((v, i) => (v - whole.next[i]) / 3);
  }
  if (!errors) return undefined;
  const relative = errors.map(
    (e, i) => Math.abs(e) / (solver.tolerance * (Math.max(Math.abs(x[i]), Math.abs(next[i])) + solver.sizes[i])),
  );
  const error = Math.max(...relative);
  return { next, error: Number.isNaN(error) ? Infinity : error };
}

/** A sub-step, in pieces where need be; to NaN where there is no solution. */
function walk(x, held, t, d, p) {
  // the next piece is number `position` of 2^level
  let level = 0;
  let position = 0;
  for (let tries = 0; tries < solver.attempts; tries++) {
    const length = d / 2 ** level;
    const tried = attempt(x, held, t + position * length, length, p);
    if (!tried || !(tried.error <= 1)) {
      let halvings = 1;
      let left = (tried ? tried.error : 0) / solver.doubled;
      for (; left > 1 && halvings < solver.halvings; halvings++) left /= solver.doubled;
      level += halvings;
      position *= 2 ** halvings;
      if (level > solver.finest) break;
      continue;
    }
    x = tried.next;
    position += 1;
    if (position === 2 ** level) return x;
    if (tried.error * solver.doubled < solver.roomToDouble && position % 2 === 0) {
      level -= 1;
      position /= 2;
    }
  }
  return x.map(() => NaN);
}
