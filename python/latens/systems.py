"""The built-in systems, a function each: `latens.systems.hodgkin_huxley()`."""

from __future__ import annotations

from . import _latens
from ._model import Model

_TEXTS = dict(_latens.systems())


def names() -> list[str]:
    """Their names, as the command line has them.

    >>> latens.systems.names()[:2]
    ['cart-pole', 'emps']
    """
    return list(_TEXTS)


def load(name: str) -> Model:
    """One by its name.

    >>> latens.systems.load("hodgkin-huxley").hidden
    ['h']
    """
    if name not in _TEXTS:
        raise KeyError(f"there is no built-in system {name!r}; there are: {', '.join(_TEXTS)}")
    return Model.from_string(_TEXTS[name], name=name)


def cart_pole() -> Model:
    """A pole balanced on a cart: positions are measured, both velocities are hidden and both accelerations unknown.

    >>> latens.systems.cart_pole().hidden
    ['z_dot', 'phi_dot']
    """
    return load("cart-pole")


def emps() -> Model:
    """A motor-driven slide (real data, see docs/evidence/real-data.md): the position is measured, the velocity is hidden, and all five constants of motor and friction are unknown.

    >>> latens.systems.emps().hidden
    ['v']
    """
    return load("emps")


def harmonic_oscillator() -> Model:
    """A mass on a spring: the position is measured, the velocity is hidden and what drives it is unknown.

    >>> latens.systems.harmonic_oscillator().hidden
    ['v']
    """
    return load("harmonic-oscillator")


def hodgkin_huxley() -> Model:
    """A spiking neuron: the voltage and two gates are measured, the inactivation gate h is hidden and its equation unknown.

    >>> latens.systems.hodgkin_huxley().hidden
    ['h']
    """
    return load("hodgkin-huxley")


def retinal_circulation() -> Model:
    """Blood flow through the eye: three pressures are measured, the venous pressure P5 is hidden and its equation unknown.

    >>> latens.systems.retinal_circulation().hidden
    ['P5']
    """
    return load("retinal-circulation")


def yeast_glycolysis() -> Model:
    """Oscillating metabolism of yeast: six concentrations are assayed, x4 is hidden and its equation unknown.

    >>> latens.systems.yeast_glycolysis().hidden
    ['x4']
    """
    return load("yeast-glycolysis")
