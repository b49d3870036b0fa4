//! The library as its users see it, and its solvers against closed forms.

mod bands;
mod check;
mod compare;
mod constants;
mod dense;
mod domain;
mod findings;
mod fixture;
mod folder;
mod gaps;
mod groups;
mod hostile;
mod layers;
mod newton;
#[path = "../../../latens-model/tests/it/oracle/mod.rs"]
mod oracle;
mod other_values;
mod predictions;
mod recursions;
mod resume;
mod sensors;
mod starts;
mod steps;
mod stiff;
mod stream;
mod suspects;
mod threads;
mod using;
mod workers;
