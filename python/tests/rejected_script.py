"""What a user may mistype; mypy --strict rejects each line that says so, and no other."""

import latens
from latens.sklearn import HiddenDynamics

model = latens.systems.harmonic_oscillator()
record = model.simulate(steps=100)
fit = model.fit(record, passes=1, solver="joint", measurement_variance={"z": 1e-4})
model.fit(record, epochz=3)  # wrong
model.fit(record, epochs=3)  # wrong
model.fit(record, solver="bacth")  # wrong
model.fit(record, passes="three")  # wrong
fit.resume(pases=3)  # wrong
latens.sweep(model, record, solver="bacth")  # wrong
HiddenDynamics(model, solver="bacth")  # wrong
HiddenDynamics(model, settings={"hidden_nois": 0.1})  # wrong
