// A formula in t, such as 2*sin(2*pi*t/10): read by hand, because a page that runs no strange code cannot
// hand it to the browser.
const FUNCTIONS = {
  sin: Math.sin, cos: Math.cos, tan: Math.tan, tanh: Math.tanh, exp: Math.exp, log: Math.log, sqrt: Math.sqrt,
  abs: Math.abs, sign: Math.sign, floor: Math.floor, min: Math.min, max: Math.max, step: (x) => (x >= 0 ? 1 : 0),
};
const NUMBERS = { pi: Math.PI, e: Math.E };

// A function of the time and the recorded value; what is wrong is thrown as a sentence.
function formula(text) {
  const tokens = text.match(/\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|[\p{L}_][\p{L}\p{N}_]*|\*\*|\S/gu) ?? [];
  let at = 0;
  const fail = (why) => { throw new Error(why); };
  const taken = (token) => tokens[at] === token && ++at > 0;
  const need = (token) => taken(token) || fail(tokens[at] ? `expected ${token} before ${tokens[at]}` : `${token} is missing at the end`);
  function sum() {
    let a = product();
    for (;;) {
      const [left, plus] = [a, tokens[at] === "+"];
      if (!plus && tokens[at] !== "-") return a;
      at++;
      const b = product();
      a = plus ? (t, r) => left(t, r) + b(t, r) : (t, r) => left(t, r) - b(t, r);
    }
  }
  function product() {
    let a = signed();
    for (;;) {
      const [left, times] = [a, tokens[at] === "*"];
      if (!times && tokens[at] !== "/") return a;
      at++;
      const b = signed();
      a = times ? (t, r) => left(t, r) * b(t, r) : (t, r) => left(t, r) / b(t, r);
    }
  }
  function signed() {
    if (taken("+")) return signed();
    if (!taken("-")) return power();
    const a = signed();
    return (t, r) => -a(t, r);
  }
  function power() {
    const a = single();
    if (!taken("^") && !taken("**")) return a;
    const b = signed();
    return (t, r) => a(t, r) ** b(t, r);
  }
  function single() {
    const token = tokens[at++] ?? fail("something is missing at the end");
    if (/^[\d.]/.test(token)) {
      const value = Number(token);
      return Number.isFinite(value) ? () => value : fail(`${token} is no number`);
    }
    if (token === "(") {
      const inner = sum();
      need(")");
      return inner;
    }
    if (token === "t") return (t) => t;
    if (token === "record") return (_, r) => r;
    if (Object.hasOwn(NUMBERS, token)) return () => NUMBERS[token];
    if (!Object.hasOwn(FUNCTIONS, token)) {
      fail(/^[\p{L}_]/u.test(token) ? `there is no ${token}; there are t, record, pi, e, ${Object.keys(FUNCTIONS).join(", ")}` : `${token} is not expected here`);
    }
    need("(");
    const given = [sum()];
    while (taken(",")) given.push(sum());
    need(")");
    const two = ["min", "max"].includes(token);
    if ((given.length === 2) !== two) fail(`${token} takes ${two ? "two values" : "one value"}`);
    return (t, r) => FUNCTIONS[token](...given.map((g) => g(t, r)));
  }
  const whole = sum();
  return at < tokens.length ? fail(`${tokens[at]} is not expected here`) : whole;
}
