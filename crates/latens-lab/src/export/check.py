"""Runs an exported model in a Python library: check.py CLIENT FOLDER."""

import importlib.util
import json
import pathlib
import sys

client, folder = sys.argv[1], pathlib.Path(sys.argv[2])
needed = {"fmpy2": "fmpy", "fmpy3": "fmpy"}.get(client, client)
if not all(importlib.util.find_spec(need) for need in ("numpy", needed)):
    sys.exit(77)  # not there

import numpy as np

shape = json.loads((folder / "shape.json").read_text())
n, m, c = shape["states"], shape["inputs"], shape["outputs"]
first_order, dt = shape["first_order"], shape["dt"]
points = np.fromfile(folder / "points.bin").reshape(-1, 1 + n + 2 * m)
driving = np.fromfile(folder / "driving.bin").reshape(-1, 1 + m)
T, X, U, V = points[:, 0], points[:, 1 : 1 + n], points[:, 1 + n : 1 + n + m], points[:, 1 + n + m :]
start = np.array(shape["start"])


def module():
    spec = importlib.util.spec_from_file_location("exported", folder / "exported.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    assert found.STATES == shape["state_names"] and found.DESCRIPTION == shape["description"]
    assert found.STATE_UNITS == shape["state_units"] and found.DT == dt and np.array_equal(found.START, start)
    return found


def free_run(step):
    """States of a run by a function of (x, u, t, u_next)."""
    rows = [start]
    for k in range(len(driving) - 1):
        rows.append(np.asarray(step(rows[-1], driving[k, 1:], driving[k, 0], driving[k + 1, 1:])).ravel())
    return np.array(rows)


def numpy_client():
    e = module()
    more = (lambda v: (v,)) if first_order else (lambda v: ())
    values = [e.f(X.T, U.T, T), e.step(X.T, U.T, T, *more(V.T)), e.h(X.T, U.T, T)]
    single = np.concatenate([e.f(X[0], U[0], T[0]), e.step(X[0], U[0], T[0], *more(V[0])), e.h(X[0], U[0], T[0])])
    values = np.concatenate([np.broadcast_to(v, (len(v), len(T))) for v in values]).T
    assert np.allclose(values[0], single, rtol=1e-11, atol=1e-13)
    return values, free_run(lambda x, u, t, v: e.step(x, u, t, *more(v)))


def jax_client():
    import jax

    jax.config.update("jax_platform_name", "cpu")
    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    e = module()
    step = (lambda x, u, t, v: e.step(x, u, t, v)) if first_order else (lambda x, u, t, v: e.step(x, u, t))
    every = lambda x, u, t, v: jnp.concatenate([e.f(x, u, t), step(x, u, t, v), e.h(x, u, t)])
    values = jax.jit(jax.vmap(every))(X, U, T, V)
    body = lambda x, k: ((y := step(x, k[0][1:], k[0][0], k[1][1:])), y)
    _, run = jax.jit(lambda x: jax.lax.scan(body, x, (driving[:-1], driving[1:])))(start)
    return np.asarray(values), np.concatenate([start[None], np.asarray(run)])


def casadi_client():
    import casadi as ca

    e = module()
    x, u, t, v = ca.SX.sym("x", n), ca.SX.sym("u", m), ca.SX.sym("t"), ca.SX.sym("v", m)
    next = e.step(x, u, t, v) if first_order else e.step(x, u, t)
    every = ca.Function("every", [x, u, t, v], [ca.vertcat(e.f(x, u, t), next, e.h(x, u, t))])
    step = ca.Function("step", [x, u, t, v], [next])
    values = every.map(len(T))(X.T, U.T, T[None], V.T)
    a, b = driving[:-1].T, driving[1:].T
    run = step.mapaccum("run", len(driving) - 1)(start, a[1:], a[:1], b[1:])
    return values.full().T, np.concatenate([start[None], run.full().T])


def onnx_client():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(folder / "exported.onnx", options, providers=["CPUExecutionProvider"])
    names = {i.name for i in session.get_inputs()}

    def call(x, u, t, v, wanted):
        feed = {"x": x, "u": u, "t": t.reshape(-1, 1), "u_next": v}
        return session.run(wanted, {k: np.ascontiguousarray(a) for k, a in feed.items() if k in names})

    values = np.concatenate(call(X, U, T, V, ["dx", "x_next", "y"]), axis=1)
    step = lambda x, u, t, v: call(x[None], u[None], np.array([t]), v[None], ["x_next"])[0]
    for net in shape["networks"]:  # the networks by themselves
        found = onnxruntime.InferenceSession(folder / f"exported.{net['file']}.onnx", options)
        given = np.array(net["arguments"])
        assert np.allclose(found.run(None, {"arguments": given})[0], net["values"], rtol=1e-12, atol=1e-14)
    return values, free_run(step)


def fmu_client(version):
    import fmpy
    from fmpy.validation import validate_fmu

    path = folder / f"exported{version}.fmu"
    problems = validate_fmu(str(path))
    assert not problems, problems
    description = fmpy.read_model_description(str(path))
    unpacked = fmpy.extract(str(path))
    references = {v.name: v.valueReference for v in description.modelVariables}
    x_refs, u_refs, y_refs = (shape["references"][k] for k in ("states", "inputs", "outputs"))
    all_refs = x_refs + u_refs + y_refs
    assert sorted(all_refs) == sorted(set(all_refs)) and set(u_refs) <= set(references.values())
    common = dict(guid=description.guid, unzipDirectory=unpacked, instanceName="test")
    if version == 2:
        from fmpy.fmi2 import FMU2Model as Exchange, FMU2Slave as Slave
    else:
        from fmpy.fmi3 import FMU3Model as Exchange, FMU3Slave as Slave

    def begin(fmu, time, state=()):
        if version == 2:
            fmu.setupExperiment(startTime=time)
            put(fmu, x_refs[: len(state)], state)
            fmu.enterInitializationMode()
        else:
            put(fmu, x_refs[: len(state)], state)
            fmu.enterInitializationMode(startTime=time)
        fmu.exitInitializationMode()

    def put(fmu, refs, values):
        if len(refs):
            (fmu.setReal if version == 2 else fmu.setFloat64)(refs, [float(v) for v in values])

    get = lambda fmu, refs: (fmu.getReal if version == 2 else fmu.getFloat64)(refs)
    fmu = Exchange(modelIdentifier=description.modelExchange.modelIdentifier, **common)
    fmu.instantiate()
    begin(fmu, 0.0)
    if version == 2:
        fmu.enterContinuousTimeMode()
    else:
        fmu.updateDiscreteStates()
        fmu.enterContinuousTimeMode()
    import ctypes

    values = np.full((len(T), n + n + c), np.nan)
    dx, x = (ctypes.c_double * n)(), (ctypes.c_double * n)()
    for k in range(len(T)):
        fmu.setTime(T[k])
        put(fmu, u_refs, U[k])
        x[:] = X[k]
        fmu.setContinuousStates(x, n)
        (fmu.getDerivatives if version == 2 else fmu.getContinuousStateDerivatives)(dx, n)
        values[k, :n] = dx[:]
        values[k, 2 * n :] = get(fmu, y_refs)
    fmu.terminate()
    fmu.freeInstance()
    if description.coSimulation is None:
        return values, np.zeros((0, n))
    slave = Slave(modelIdentifier=description.coSimulation.modelIdentifier, **common)
    slave.instantiate()
    begin(slave, driving[0, 0])
    rows = [np.array(get(slave, x_refs))]
    for k in range(len(driving) - 1):
        put(slave, u_refs, driving[k, 1:])
        slave.doStep(driving[k, 0], dt)
        rows.append(np.array(get(slave, x_refs)))
    # a step from each point, where it begins
    for k in range(len(T)):
        slave.reset()
        begin(slave, T[k], X[k])
        put(slave, u_refs, U[k])
        slave.doStep(T[k], dt)
        values[k, n : 2 * n] = get(slave, x_refs)
    slave.terminate()
    slave.freeInstance()
    return values, np.array(rows)


clients = {
    "numpy": numpy_client,
    "jax": jax_client,
    "casadi": casadi_client,
    "onnxruntime": onnx_client,
    "fmpy2": lambda: fmu_client(2),
    "fmpy3": lambda: fmu_client(3),
}
values, run = clients[client]()
np.ascontiguousarray(values, float).tofile(folder / f"{client}-values.bin")
np.ascontiguousarray(run, float).tofile(folder / f"{client}-run.bin")
