"""What a user may write; mypy --strict looks at it, and a test runs it."""

import numpy as np
import numpy.typing as npt

import latens

model: latens.Model = latens.systems.harmonic_oscillator()
record: latens.Record = model.simulate(steps=500, noise="1%", seed=3)
fit: latens.Fit = model.fit(record, test=[record], seed=1, passes=1, progress=False)
hidden: npt.NDArray[np.float64] = fit.states["v"].mean
width: npt.NDArray[np.float64] = fit.states["v"].std
error: float = fit.scores["nrmse"]["Harmonic oscillator"]["z"]
prediction: latens.Prediction = fit.predict(record, warmup=100)
ahead: npt.NDArray[np.float64] = prediction.y["z"].mean
learned: latens.NetworkValue = fit.network("acceleration")(z=0.3, v=np.linspace(-1, 1, 5))
stream: latens.Stream = fit.stream()
estimate: latens.Estimate = stream.step({"z": 1.0})
speed: float = estimate.mean["v"]


def stop_early(progress: latens.Progress) -> bool:
    return progress.seconds < 60


try:
    model.fit(record, passes=1, progress=stop_early)
except latens.ModelError as mistake:
    print(mistake.line, mistake.column)
print(hidden.shape, width.shape, ahead.shape, learned.mean.shape, error, speed)
