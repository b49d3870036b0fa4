//! `latens worker`: what `latens fit --backend processes` starts. It answers requests on standard input
//! until there are no more.

use std::io;

use clap::Args;

use crate::failure::Failure;

/// Hold records of a fit; `latens fit --backend processes` starts it
#[derive(Args)]
#[command(hide = true)]
pub struct Arguments {}

pub fn run(_: &Arguments) -> Result<(), Failure> {
    let served = latens::solve::workers::serve(io::stdin().lock(), io::stdout().lock());
    served.map_err(Failure::Output)
}
