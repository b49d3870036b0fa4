"""Least squares on the free run: what anyone writes in an afternoon, as a rival of `latens lab gallery`.

    python3 least_squares.py model.toml train.csv SEED test1.csv:WARM_UP …      (numpy, scipy)

Reads a model file of Latens, simulates it with the file's own method and step, and fits unknown constants (their
logarithms where positive), the weights of networks and the initial state to the training record at once, from the
file's guesses; with a network it tries two ways and keeps the closer fit. Each test is run from the state that fits its first samples. Prints JSON.

It is told more than Latens: optimisation starts hidden states at the mean of their truth over the training record,
and networks are scaled by their true arguments.
"""
import csv, json, math, re, sys, time, tomllib
import numpy as np
from scipy.optimize import least_squares

DECAY = 0.01  # first standard deviation of misfits, over range: weights have a prior of one beside it
EVALUATIONS = 60
LOST = 1e3  # misfit of a run that left the finite numbers


def words(text):
    return set(re.findall(r"[^\W\d]\w*", text))


def python(text):
    """An equation of a model file in Python."""
    return re.sub(r"\bif\s*\(", "where(", str(text)).replace("^", "**")


def functions(module, where):
    tanh, exp, log, sqrt = module.tanh, module.exp, module.log, module.sqrt
    if module is math:
        softplus = lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x)))
        sign = lambda x: (x > 0) - (x < 0)
        low, high = min, max
    else:
        softplus = lambda x: np.logaddexp(0, x)
        sign, low, high = np.sign, np.minimum, np.maximum
    smooth_abs = lambda x, width: sqrt(x * x + width * width)
    return dict(
        exp=exp, log=log, sqrt=sqrt, tanh=tanh, sin=module.sin, cos=module.cos, tan=module.tan, expm1=module.expm1,
        log1p=module.log1p, sinh=module.sinh, cosh=module.cosh, atan2=getattr(module, "atan2", None) or np.arctan2,
        floor=module.floor, square=lambda x: x * x, abs=abs, min=low, max=high, sign=sign, where=where, pi=math.pi,
        mod=lambda x, y: x - y * module.floor(x / y), sigmoid=lambda x: 0.5 * (1 + tanh(0.5 * x)), softplus=softplus,
        smooth_abs=smooth_abs, smooth_sign=lambda x, width: tanh(x / width),
        smooth_max=lambda a, b, width: (a + b + smooth_abs(a - b, width)) / 2,
        smooth_min=lambda a, b, width: (a + b - smooth_abs(a - b, width)) / 2,
    )


SCALAR = functions(math, lambda c, a, b: a if c else b)
ARRAY = functions(np, np.where)


class Net:
    """One hidden layer after another, each of tanh; a linear path beside them where the file says so."""

    def __init__(self, name, given, at):
        self.name, self.skip = name, given.get("skip", False)
        self.units = [int(layer.split()[0]) for layer in given["layers"]]
        assert all(layer.split()[1] == "tanh" for layer in given["layers"]) and "outputs" not in given
        self.at = at  # of its first weight
        self.center, self.scale, self.size = [0.0], [1.0], 1.0

    def shape(self, arguments):
        widths = [arguments, *self.units, 1]
        self.shapes = list(zip(widths[1:], widths))
        self.arguments = arguments
        return sum(o * (i + 1) for o, i in self.shapes) + self.skip * arguments

    def start(self, rng):
        parts = []
        for o, i in self.shapes:
            last = (o, i) == self.shapes[-1]
            parts += [rng.standard_normal(o * i) / np.sqrt(i) * (0.1 if last else 1), np.zeros(o)]
        return np.concatenate(parts + [np.zeros(self.skip * self.arguments)])

    def simple(self):
        """The weights of a linear function: the last bias and the direct path."""
        end = self.at + sum(o * (i + 1) for o, i in self.shapes)
        return np.arange(end - 1, end + self.skip * self.arguments)

    def bind(self, weights):
        """Once for each run: weights are cut into layers."""
        at, layers = self.at, []
        for o, i in self.shapes:
            layers.append((weights[at:at + o * i].reshape(o, i, -1), weights[at + o * i:at + o * (i + 1)]))
            at += o * (i + 1)
        (w, self.bias), *self.deeper = layers
        self.first = [w[:, k] for k in range(self.arguments)]
        self.direct = weights[at:at + self.skip * self.arguments]

    def __call__(self, *arguments):
        given = [(a - c) / s for a, c, s in zip(arguments, self.center, self.scale)]
        z = self.bias
        for w, g in zip(self.first, given):
            z = z + w * g
        for w, b in self.deeper:
            z = np.add.reduce(w * np.tanh(z), 1) + b
        z = z[0]
        for w, g in zip(self.direct, given):
            z = z + w * g
        return self.size * z


class Model:
    def __init__(self, file):
        self.file = file
        self.step = file["time"]["step"]
        self.method = file["time"].get("method", "euler")
        self.substeps = file["time"].get("substeps", 1)
        assert file["time"].get("hold", "zero-order") == "zero-order"
        self.states, self.inputs = list(file["states"]), list(file.get("inputs", {}))
        self.unknowns = list(file.get("unknowns", {}))
        self.channels = list(file["measurements"])
        value = lambda m: m["value"] if isinstance(m, dict) else m
        self.measured = {c: value(m) for c, m in file["measurements"].items()}
        self.curves = {}
        for name, given in file.get("tables", {}).items():
            self.curves[name] = lambda x, g=given: np.interp(x, g["x"], g["y"], period=g.get("period"))
        self.constants = {}
        for name, text in file.get("constants", {}).items():
            self.constants[name] = eval(python(text), {**SCALAR, **self.constants})
        self.nets, self.weights = {}, 0
        for name, given in file.get("networks", {}).items():
            self.nets[name] = net = Net(name, given, self.weights)
            net.texts = self.calls(name)
            self.weights += net.shape(len(net.texts))
        self.f = {kind: self.compile(space) for kind, space in (("scalar", SCALAR), ("array", ARRAY))}
        texts = [python(t) for t in self.measured.values()]
        self.h = self.function("measure", texts, ARRAY)

    def equations(self):
        return [s["derivative"] for s in self.file["states"].values()]

    def calls(self, name):
        """The arguments of a network, as they are written where it is first called."""
        texts = [str(t) for t in [*self.equations(), *self.file.get("expressions", {}).values()]]
        text = next(t for t in texts if name in words(t))
        at = text.index(name + "(") + len(name) + 1
        depth, parts = 0, [""]
        for letter in text[at:]:
            depth += (letter == "(") - (letter == ")")
            if depth < 0:
                break
            if letter == "," and depth == 0:
                parts.append("")
            else:
                parts[-1] += letter
        return parts

    def function(self, name, texts, space):
        """A function of states x, inputs u and unknowns p; what is not asked for is not computed."""
        expressions = {n: str(t) for n, t in self.file.get("expressions", {}).items()}
        ordered, seen = [], set()

        def need(text):
            for word in sorted(words(text)):
                if word in expressions and word not in seen:
                    seen.add(word)
                    need(expressions[word])
                    ordered.append(word)

        for text in texts:
            need(str(text))
        lines = [f"def {name}(_x, _u, _p):"]
        for group, letter in ((self.states, "x"), (self.inputs, "u"), (self.unknowns, "p")):
            lines += [f"    {n} = _{letter}[{k}]" for k, n in enumerate(group)]
        lines += [f"    {n} = {python(expressions[n])}" for n in ordered]
        lines.append(f"    return ({', '.join(python(t) for t in texts)},)")
        scope = {**space, **self.curves, **self.constants, **self.nets}
        exec("\n".join(lines), scope)
        return scope[name]

    def compile(self, space):
        return self.function("derivative", self.equations(), space)

    def advance(self, f, x, u, p):
        h = self.step / self.substeps
        for _ in range(self.substeps):
            if self.method == "rk4":
                k1 = f(x, u, p)
                k2 = f([a + h / 2 * k for a, k in zip(x, k1)], u, p)
                k3 = f([a + h / 2 * k for a, k in zip(x, k2)], u, p)
                k4 = f([a + h * k for a, k in zip(x, k3)], u, p)
                x = [a + h / 6 * (q + 2 * r + 2 * s + t) for a, q, r, s, t in zip(x, k1, k2, k3, k4)]
            elif self.method == "euler":
                x = [a + h * k for a, k in zip(x, f(x, u, p))]
            else:
                raise SystemExit(f"the method {self.method} is not known here")
        return x

    def run(self, p, w, start, inputs):
        """States (samples, states, batch) of a free run; NaN where it leaves the finite numbers."""
        batch = np.ndim(start[0]) > 0
        for net in self.nets.values():
            net.bind(w if batch else w[:, None])
        scalar = not batch and not self.nets
        f = self.f["scalar" if scalar else "array"]
        rows = inputs.tolist()
        x = [float(v) for v in start] if scalar else [np.asarray(v, float) for v in start]
        p = [float(v) for v in p] if scalar else list(p)
        size = start.shape[1] if batch else 1
        out = np.full((len(rows), len(self.states), size), np.nan)
        for k, u in enumerate(rows):
            for i, v in enumerate(x):
                out[k, i] = v
            if k + 1 == len(rows):
                break
            try:
                x = self.advance(f, x, u, p)
            except (OverflowError, ZeroDivisionError, ValueError, TypeError):
                break
            if scalar and not all(abs(v) < 1e12 for v in x):  # a power of a negative number is complex
                break
        return out

    def outputs(self, states, inputs):
        """(samples, channels, batch)"""
        x = [states[:, i] for i in range(len(self.states))]
        u = [inputs[:, k, None] for k in range(len(self.inputs))]
        shown = self.h(x, u, [0.0] * len(self.unknowns))  # no measurement depends on one
        return np.stack([np.broadcast_to(s, x[0].shape) for s in shown], 1)


def read(path):
    with open(path) as file:
        rows = list(csv.reader(file))
    values = np.array([[float(v) if v else np.nan for v in row] for row in rows[1:]])
    return {name: values[:, k] for k, name in enumerate(rows[0])}


def columns(table, names):
    return np.stack([table[n] for n in names], 1) if names else np.zeros((len(table["t"]), 0))


class Fit:
    def __init__(self, model, table, seed):
        self.model = model
        self.inputs, self.y = columns(table, model.inputs), columns(table, model.channels)
        self.range = np.nanmax(self.y, 0) - np.nanmin(self.y, 0)
        truth = columns(table, ["truth_" + s for s in model.states])
        self.center, self.size = truth.mean(0), truth.std(0) + 1e-12
        start = self.center.copy()
        for k, channel in enumerate(model.channels):
            if model.measured[channel].strip() in model.states:
                start[model.states.index(model.measured[channel].strip())] = self.y[0, k]
        self.start = (start - self.center) / self.size
        given = [model.file["unknowns"][n] for n in model.unknowns]
        self.positive = np.array([g.get("positive", False) for g in given], bool)
        self.guess = np.array([g["guess"] for g in given], float)
        self.scale_networks(truth)
        rng = np.random.default_rng(seed)
        self.w0 = np.concatenate([n.start(rng) for n in model.nets.values()] or [np.zeros(0)])

    def scale_networks(self, truth):
        """Scales of arguments, and of what a network must give for the derivatives that it is in."""
        model = self.model
        x, u = list(truth.T), list(self.inputs.T)
        slope = np.gradient(truth, model.step, axis=0)
        for net in model.nets.values():
            given = model.function("arguments", net.texts, ARRAY)(x, u, self.guess)
            net.center = [np.mean(g) for g in given]
            net.scale = [np.std(g) + 1e-12 for g in given]
        for name, net in model.nets.items():
            at = lambda value: model.function("derivative", model.equations(), {**ARRAY})
            sizes = []
            saved = dict(model.nets)
            for k, _ in enumerate(model.states):
                values = []
                for value in (0.0, 1.0):
                    model.nets = {n: (lambda *a, v=value: v + 0 * a[0]) for n in saved}
                    values.append(np.broadcast_to(at(value)(x, u, self.guess)[k], len(truth)))
                model.nets = saved
                effect = np.median(np.abs(values[1] - values[0]))
                if effect > 0:
                    sizes.append(np.std(slope[:, k]) / effect)
            net.size = min(sizes)

    def split(self, z):
        k = len(self.guess)
        positive = self.positive[:, None]
        p = np.where(positive, self.guess[:, None] * np.exp(np.clip(z[:k], -12, 12)),
                     self.guess[:, None] + np.maximum(1.0, np.abs(self.guess[:, None])) * z[:k])
        w = z[k:k + self.model.weights]
        x0 = self.center[:, None] + self.size[:, None] * z[k + self.model.weights:]
        return p, w, x0

    def misfits(self, z, inputs, y):
        """(samples × channels, batch), over the range of each channel."""
        p, w, x0 = self.split(z)
        if z.shape[1] == 1:
            p, w, x0 = p[:, 0], w[:, 0], x0[:, 0]
        states = self.model.run(p, w, x0, inputs)
        shown = self.model.outputs(states, inputs)
        away = (shown - y[:, :, None]) / self.range[None, :, None]
        away = np.where(np.isnan(y)[:, :, None], 0, away)
        away = np.where(np.isfinite(away), np.clip(away, -LOST, LOST), LOST)
        return away.reshape(-1, away.shape[2])

    def solve(self, z0, free, inputs, y, prior, most=EVALUATIONS):
        """Over some entries of z, from where they are; prior gives more residuals."""
        def whole(part):  # part counts from z0: the first trust region follows from the size of what is optimised
            z = np.repeat(z0[:, None], part.shape[1], 1)
            z[free] += part
            return z

        def residuals(part):
            z = whole(part)
            return np.concatenate([self.misfits(z, inputs, y), prior(z)])

        def jacobian(part):
            n, h = len(part), 1e-5
            steps = np.concatenate([h * np.eye(n), -h * np.eye(n)], 1)
            value = residuals(part[:, None] + steps)
            return (value[:, :n] - value[:, n:]) / (2 * h)

        enough = 1e-5 if self.model.nets else 1e-10  # weights have flat directions without end
        found = least_squares(lambda v: residuals(v[:, None])[:, 0], np.zeros(len(free)), jacobian, x_scale="jac",
                              max_nfev=most, xtol=1e-12, ftol=enough, gtol=1e-12)
        z = z0.copy()
        z[free] += found.x
        return z, found

    def way(self, linear_first):
        """z by one way: all weights at once, or linear functions first; at last with the decay that fits the misfits."""
        k, m = len(self.guess), self.model.weights
        z = np.concatenate([np.zeros(k), np.zeros(m) if linear_first else self.w0, self.start])
        every = np.arange(len(z))
        stages = [(every, EVALUATIONS, DECAY)]
        if m:
            stages.append((every, EVALUATIONS // 3, None))
        if linear_first:
            simple = np.concatenate([n.simple() for n in self.model.nets.values()])
            simple = np.concatenate([np.arange(k), k + simple, np.arange(k + m, len(z))])
            stages.insert(0, (simple, EVALUATIONS // 2, DECAY))
        for free, most, sigma in stages:
            sigma = sigma or max(rms, 1e-4)
            z, found = self.solve(z, free, self.inputs, self.y, lambda z: sigma * z[k:k + m], most)
            self.evaluations += found.nfev
            rms = np.sqrt(np.mean(self.misfits(z[:, None], self.inputs, self.y) ** 2))
            if len(free) < len(z):
                z[k:k + m] += self.w0
        return rms, z

    def train(self):
        """With a network by two ways, of which the closer one is kept."""
        self.evaluations = 0
        ways = [self.way(linear_first) for linear_first in ([False, True] if self.model.weights else [False])]
        self.rms, self.z = min(ways, key=lambda way: way[0])
        z = self.z
        p, w, x0 = self.split(z[:, None])
        states = self.model.run(p[:, 0], w[:, 0], x0[:, 0], self.inputs)[:, :, 0]
        good = states[np.isfinite(states).all(1)]
        self.middle = (good.mean(0) - self.center) / self.size
        self.spread = good.std(0) / self.size + 1e-9

    def test(self, table, warm_up):
        """A run over a record, from the state that fits its first samples; a weak prior for what they do not show."""
        inputs, y = columns(table, self.model.inputs), columns(table, self.model.channels)
        z, free = self.z.copy(), np.arange(len(self.z) - len(self.model.states), len(self.z))
        z[free] = self.middle
        for k, channel in enumerate(self.model.channels):
            text = self.model.measured[channel].strip()
            if text in self.model.states:
                i = self.model.states.index(text)
                z[free[i]] = (y[0, k] - self.center[i]) / self.size[i]
        sigma = max(self.rms, 1e-4)
        prior = lambda z: sigma * (z[free] - self.middle[:, None]) / (3 * self.spread[:, None])
        z, _ = self.solve(z, free, inputs[:warm_up], y[:warm_up], prior)
        p, w, x0 = self.split(z[:, None])
        states = self.model.run(p[:, 0], w[:, 0], x0[:, 0], inputs)
        shown = self.model.outputs(states, inputs)
        listed = lambda a: [float(v) if np.isfinite(v) else None for v in a[warm_up:, :, 0].ravel()]
        return {"from": warm_up, "states": listed(states), "outputs": listed(shown)}


def main():
    np.seterr(all="ignore")
    path, train, seed, *tests = sys.argv[1:]
    with open(path, "rb") as file:
        model = Model(tomllib.load(file))
    fit = Fit(model, read(train), int(seed))
    fit.train()
    p = fit.split(fit.z[:, None])[0][:, 0]
    made = []
    for test in tests:
        name, warm_up = test.rsplit(":", 1)
        made.append(fit.test(read(name), int(warm_up)))
    print(json.dumps({
        "states": model.states, "constants": dict(zip(model.unknowns, p.tolist())), "train": float(fit.rms),
        "evaluations": fit.evaluations, "seconds": time.process_time(), "tests": made,
    }))


main()
