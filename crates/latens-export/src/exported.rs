//! What is exported of a fit: its equations with the constants themselves, the weights by layer, and what
//! goes with them.

use latens::Fit;
use latens::model::network::{Activation, Network};
use latens::model::{Hold, Model};

use crate::names::Names;

/// A fit on its way into another language.
pub struct Exported<'f> {
    /// What was learned.
    pub fit: &'f Fit,
    /// Its model, with the unknown constants themselves in θ.
    pub model: Model,
    /// Their learned values.
    pub constants: Vec<f64>,
    /// Where a simulation starts: where the fit did in its first record.
    pub start: Vec<f64>,
    /// The sample time.
    pub dt: f64,
    /// Names that every language understands.
    pub names: Names,
}

/// A dense layer: φ(W z + b).
pub struct Layer<'a> {
    /// W, row by row.
    pub weights: &'a [f64],
    /// b.
    pub bias: &'a [f64],
    /// φ; the identity after the last one.
    pub activation: Activation,
    /// Length of z.
    pub from: usize,
}

/// The weights of a network, layer by layer.
pub struct Weights<'a> {
    /// Its shape and scaling.
    pub network: &'a Network,
    /// From the arguments to the output; none where there is nothing of the network.
    pub layers: Vec<Layer<'a>>,
    /// D, row by row, where there is one.
    pub skip: Option<&'a [f64]>,
}

/// A state, an input, a measurement or a learned constant.
pub struct Listed<'a> {
    /// Its name for other languages.
    pub plain: &'a str,
    /// Its name in the model.
    pub name: &'a str,
    /// Its unit.
    pub unit: &'a str,
}

impl<'f> Exported<'f> {
    /// Of a fit. Of an ensemble it is the best member.
    pub fn new(fit: &'f Fit) -> Self {
        let unknowns = fit.model.unknowns.iter().zip(&fit.theta);
        Self {
            fit,
            model: fit.model.plain(),
            constants: unknowns.map(|(u, theta)| u.value(*theta)).collect(),
            start: fit.start(&[]),
            dt: fit.facts.sample_time,
            names: Names::of(&fit.model),
        }
    }

    /// The weights of each network.
    pub fn networks(&self) -> Vec<Weights<'_>> {
        let system = &self.model.system;
        let ranges = system.weight_ranges();
        let networks = system.networks().iter().zip(ranges);
        networks
            .map(|(network, range)| Weights::new(network, &self.fit.theta[range]))
            .collect()
    }

    /// All that has a name and a unit, by its kind.
    pub fn listed(&self) -> [(&'static str, Vec<Listed<'_>>); 4] {
        fn list<'a>(
            plain: &'a [String],
            all: impl Iterator<Item = (&'a String, &'a String)>,
        ) -> Vec<Listed<'a>> {
            let pairs = plain.iter().zip(all);
            pairs
                .map(|(plain, (name, unit))| Listed { plain, name, unit })
                .collect()
        }
        let (model, names) = (&self.model, &self.names);
        let states = model.states.iter().map(|s| (&s.name, &s.unit));
        let inputs = model.inputs.iter().map(|u| (&u.name, &u.unit));
        let outputs = model.measurements.iter().map(|y| (&y.name, &y.unit));
        let constants = model.unknowns.iter().map(|u| (&u.name, &u.unit));
        [
            ("state", list(&names.states, states)),
            ("input", list(&names.inputs, inputs)),
            ("output", list(&names.outputs, outputs)),
            ("constant", list(&names.constants, constants)),
        ]
    }

    /// Whether inputs go straight to their next value.
    pub fn first_order(&self) -> bool {
        self.model.hold.contains(&Hold::FirstOrder)
    }

    /// The first line of a file: where it comes from.
    pub fn origin(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        format!("{}, learned by Latens {version}", self.model.name)
    }
}

impl<'a> Weights<'a> {
    fn new(network: &'a Network, theta: &'a [f64]) -> Self {
        let (mut layers, mut skip, mut rest) = (vec![], None, theta);
        let mut take = |length: usize| {
            let (taken, after) = rest.split_at(length);
            rest = after;
            taken
        };
        if !network.absent {
            let last = (network.outputs.len(), Activation::Identity);
            let mut from = network.arguments;
            for &(units, activation) in network.layers.iter().chain([&last]) {
                layers.push(Layer {
                    weights: take(units * from),
                    bias: take(units),
                    activation,
                    from,
                });
                from = units;
            }
            skip = network.skip.then(|| take(last.0 * network.arguments));
        }
        Self {
            network,
            layers,
            skip,
        }
    }
}
