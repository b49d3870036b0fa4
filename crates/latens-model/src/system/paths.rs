//! How θ enters the equations: through unknown constants and through the outputs of networks.

use super::System;
use crate::graph::{Graph, Id, Node};
use crate::network::Trace;

/// One way in which θ enters a row: its root in the full tape is the factor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    pub(super) root: usize,
    pub(super) through: Through,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Through {
    Constant(usize),
    Output { call: usize, k: usize },
}

/// What a program needs that gives values, slopes and what θ does to them.
pub(super) struct Learned {
    pub(super) roots: Vec<Id>,
    /// Calls whose weights have gradients in it.
    pub(super) calls: Vec<usize>,
    /// Rows that θ enters, and how.
    pub(super) paths: Vec<(usize, Vec<Path>)>,
}

impl Learned {
    pub(super) fn of(graph: &mut Graph, values: &[Id], slopes: &[Id]) -> Self {
        // leaves through which θ acts: unknown constants and the outputs of networks
        let mut leaves: Vec<(Id, Through)> = Vec::new();
        for id in graph.reachable(values) {
            match graph.node(id) {
                Node::Theta(i) => leaves.push((id, Through::Constant(i))),
                Node::Output(call, k) => leaves.push((id, Through::Output { call, k })),
                _ => {}
            }
        }
        let mut roots = [values, slopes].concat();
        let (mut calls, mut paths) = (vec![], vec![]);
        for (row, &value) in values.iter().enumerate() {
            let mut row_paths = vec![];
            for &(leaf, through) in &leaves {
                let factor = graph.derivative(value, leaf);
                if graph.value(factor) == Some(0.0) {
                    continue;
                }
                row_paths.push(Path {
                    root: roots.len(),
                    through,
                });
                roots.push(factor);
                if let Through::Output { call, .. } = through {
                    calls.push(call);
                }
            }
            if !row_paths.is_empty() {
                paths.push((row, row_paths));
            }
        }
        calls.sort_unstable();
        calls.dedup();
        Self {
            roots,
            calls,
            paths,
        }
    }
}

impl System {
    /// The derivatives by θ of rows that it enters by these paths, one row after another.
    pub(super) fn gradients(
        &self,
        factor: impl Fn(usize) -> f64,
        traces: &[Trace],
        paths: &[Vec<Path>],
        by_theta: &mut [f64],
    ) {
        by_theta.fill(0.0);
        let rows = by_theta.chunks_exact_mut(self.parameters.max(1));
        for (row, paths) in rows.zip(paths) {
            for path in paths {
                let factor = factor(path.root);
                match path.through {
                    Through::Constant(i) => row[i] += factor,
                    Through::Output { call, k } => {
                        let (network, offset) = self.calls[call];
                        let network = &self.networks[network];
                        let gradient = &mut row[offset..offset + network.weights()];
                        network.accumulate_gradient(&traces[call], k, factor, gradient);
                    }
                }
            }
        }
    }
}
