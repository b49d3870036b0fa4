//! The same model with simpler networks, with signals in their place, and with unscaled constants.

use super::{Model, State};
use crate::network::Structure;
use crate::resolve::{self, Variant};

impl Model {
    /// The model with networks of less structure than the file says; this one's are whole.
    ///
    /// ```
    /// use latens_model::{Model, network::Structure};
    ///
    /// let model = Model::builtin("harmonic-oscillator")?;
    /// let linear = model.simplified(Structure::Linear);
    /// // a factor for each argument, and a constant
    /// assert_eq!(linear.system.parameters(), model.arguments(0).len() + 1);
    /// assert_eq!(model.simplified(Structure::Absent).system.parameters(), 0);
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    pub fn simplified(&self, structure: Structure) -> Self {
        Self {
            system: self.system.simplified(structure),
            ..self.clone()
        }
    }

    /// The model in which each output of a network is a state that nothing drives, after the
    /// states of this one: what the known equations alone can say about it. With the call and
    /// the output of each; `None` without networks.
    pub fn signals(&self) -> Option<(Self, Vec<(usize, usize)>)> {
        let (file, mut diagnostics) = self.definitions();
        let equations = resolve::equations(&file, Variant::Signals, &mut diagnostics)?;
        let signals = equations.signals.clone();
        let mut states = self.states.clone();
        states.extend(signals.iter().map(|_| State {
            name: String::new(),
            unit: String::new(),
            start: None,
            start_deviation: None,
            scale: None,
            center: None,
        }));
        let (system, _) = Self::compile(&file, equations);
        let model = Self {
            states,
            system,
            truth: None,
            ..self.clone()
        };
        (!signals.is_empty()).then_some((model, signals))
    }

    /// The same equations with the unknown constants themselves first in θ, in place of the numbers of
    /// order one that a solver sees.
    ///
    /// ```
    /// use latens_model::{Model, Point};
    ///
    /// let model = Model::builtin("emps")?.plain();
    /// let theta: Vec<f64> = model.unknowns.iter().map(|u| u.guess).collect();
    /// let at = Point { time: 0.0, state: &[0.0, 0.0], input: &[1.0], theta: &theta };
    /// let mut derivative = [0.0; 2];
    /// model.system.derivative(&mut model.system.workspace(), at, &mut derivative);
    /// assert_eq!(derivative, [0.0, 0.37], "gain times one volt");
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    ///
    /// # Panics
    /// Never: the text was compiled before.
    pub fn plain(&self) -> Self {
        let (file, mut diagnostics) = self.definitions();
        let equations = resolve::equations(&file, Variant::Plain, &mut diagnostics);
        let equations = equations.expect("it has been compiled before");
        let (system, _) = Self::compile(&file, equations);
        Self {
            system: system.with_networks_of(&self.system),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Point, systems};

    /// Weights of order one.
    fn theta(model: &Model) -> Vec<f64> {
        let wave = |i: usize| ((3 * i + 1) as f64).powi(2).sin();
        (0..model.system.parameters()).map(wave).collect()
    }

    /// With the signals set to what the networks put out, the extended system moves as the learned
    /// one, at any point; the signals themselves stand still.
    fn check_signals(model: &Model, count: usize) {
        let (extended, outputs) = model.signals().unwrap();
        let (system, n) = (&model.system, model.states.len());
        assert_eq!(outputs.len(), count);
        assert_eq!(extended.system.states(), n + count);
        let theta = theta(model);
        let (mut ws, mut extended_ws) = (system.workspace(), extended.system.workspace());
        for k in 0..20 {
            let wave = |i: usize| ((7 * k + i) as f64).powi(2).sin();
            let state: Vec<f64> = (0..n).map(wave).collect();
            let input: Vec<f64> = (n..n + model.inputs.len()).map(wave).collect();
            let mut derivative = vec![0.0; n];
            let at = |state| Point {
                time: 0.3,
                state,
                input: &input,
                theta: &theta,
            };
            system.derivative(&mut ws, at(&state), &mut derivative);
            let mut calls = Vec::new();
            let blank = [state.as_slice(), &vec![0.0; count]].concat();
            extended
                .system
                .visit_arguments(&mut extended_ws, at(&blank), |i, arguments| {
                    let network = &system.networks()[i];
                    let mut trace = network.trace();
                    for (j, value) in arguments.iter().enumerate() {
                        network.set_argument(&mut trace, j, *value);
                    }
                    network.evaluate(&theta[system.weight_ranges()[i].clone()], &mut trace);
                    calls.push(trace.output);
                });
            let put_out = outputs.iter().map(|&(call, k)| calls[call][k]);
            let state: Vec<f64> = state.iter().copied().chain(put_out).collect();
            let mut found = vec![f64::NAN; n + count];
            extended
                .system
                .derivative(&mut extended_ws, at(&state), &mut found);
            for (f, expected) in found.iter().zip(&derivative) {
                assert!((f - expected).abs() < 1e-12 * (1.0 + expected.abs()));
            }
            assert!(found[n..].iter().all(|f| *f == 0.0));
        }
    }

    /// One signal for each output of each call: cart-pole calls a network of two outputs once; one
    /// called twice has two signals, or one where the arguments are the same.
    #[test]
    fn signals_stand_for_the_outputs_of_calls() {
        let model = Model::from_text("cart-pole", systems::find("cart-pole").unwrap()).unwrap();
        check_signals(&model, 2);
        let twice = |second: &str| {
            let text = format!(
                "[states.x]\nderivative = \"y*net(x, 2*y)\"\n\
                 [states.y]\nderivative = \"c - {second}\"\n[unknowns]\nc = {{ guess = 1, scale = 1 }}\n\
                 [measurements]\nx = \"x\"\n[networks.net]\nlayers = [\"4 tanh\"]\n"
            );
            Model::from_text("twice", &text).unwrap()
        };
        check_signals(&twice("net(y, x)"), 2);
        check_signals(&twice("3*net(x, 2*y)^2"), 1);
        let none = "[states.x]\nderivative = \"-c*x\"\n[measurements]\nx = \"x\"\n\
                    [unknowns]\nc = { guess = 1, scale = 1 }\n";
        assert!(Model::from_text("none", none).unwrap().signals().is_none());
    }
}
