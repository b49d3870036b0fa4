//! What the file says of its networks: units and arguments.

use super::Model;
use crate::expression::{Expr, Kind};
use crate::file;
use crate::units::{self, NetworkUnits};

impl Model {
    /// The units of what a network is given and of what it puts out, where the file says so or the units of the
    /// equations that it stands in do.
    pub fn units(&self, network: usize) -> NetworkUnits {
        let (file, _) = file::read(&self.text);
        units::of_network(&file, network, self.system.networks()[network].arguments)
    }

    /// What a network is called with, argument by argument, as it stands in the file; where calls
    /// differ, all of them: `v1 | v2`.
    pub fn arguments(&self, network: usize) -> Vec<String> {
        let network = &self.system.networks()[network];
        let (file, _) = file::read(&self.text);
        let mut texts = vec![Vec::<&str>::new(); network.arguments];
        let mut open: Vec<&Expr> = file
            .states
            .iter()
            .filter_map(|s| s.derivative.as_ref())
            .collect();
        open.extend(file.expressions.iter().map(|(_, expr)| expr));
        open.extend(file.measurements.iter().map(|m| &m.value));
        while let Some(expr) = open.pop() {
            match &expr.kind {
                Kind::Call {
                    name, arguments, ..
                } => {
                    if *name == network.name {
                        for (texts, argument) in texts.iter_mut().zip(arguments) {
                            let text = self.text.get(argument.span.clone()).unwrap_or("?");
                            if !texts.contains(&text) {
                                texts.push(text);
                            }
                        }
                    }
                    open.extend(arguments);
                }
                Kind::Negate(inner) | Kind::Not(inner) => open.push(inner),
                Kind::Binary(_, left, right) => open.extend([&**left, &**right]),
                Kind::Number(_) | Kind::Name(_) | Kind::Invalid => {}
            }
        }
        texts.iter().map(|texts| texts.join(" | ")).collect()
    }
}
