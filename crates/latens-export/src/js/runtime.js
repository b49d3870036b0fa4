const sigmoid = (x) => {
  const e = Math.exp(-Math.abs(x));
  return (x >= 0 ? 1 : e) / (1 + e);
};
const softplus = (x) => (x < 0 ? 0 : x) + Math.log1p(Math.exp(-Math.abs(x)));
const elu = (x) => (x > 0 ? x : Math.expm1(x));
const silu = (x) => x * sigmoid(x);
const relu = (x) => (x < 0 ? 0 : x);
const linoid = (x) => (Math.abs(x) < 1e-5 ? 1 + x / 2 + (x * x) / 12 : -x / Math.expm1(-x));
const sinc = (x) => (Math.abs(x) < 1e-4 ? 1 - (x * x) / 6 : Math.sin(x) / x);

function power(x, n) {
  let value = 1;
  for (let k = Math.abs(n); k > 0; k >>= 1) {
    if (k & 1) value *= x;
    x *= x;
  }
  return n < 0 ? 1 / value : value;
}

/** b + W z, with W row by row. */
function dense(w, b, z) {
  return b.map((sum, i) => {
    for (let j = 0; j < z.length; j++) sum += w[i * z.length + j] * z[j];
    return sum;
  });
}

/** A curve through points, which keeps the values at its ends or, with a period, repeats. */
function lookup({ x, y, period }, at) {
  const n = x.length;
  if (period > 0) {
    const turn = (at - x[0]) % period;
    at = x[0] + (turn < 0 ? turn + period : turn);
  }
  let k = x.findIndex((v) => !(v <= at));
  if (k < 0) k = n;
  if (k === 0) return y[0];
  if (k === n && !(period > 0)) return y[n - 1];
  const x1 = k < n ? x[k] : x[0] + period;
  const y1 = k < n ? y[k] : y[0];
  return y[k - 1] + ((y1 - y[k - 1]) / (x1 - x[k - 1])) * (at - x[k - 1]);
}

