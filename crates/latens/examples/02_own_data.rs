//! Data of your own: a CSV whose columns have other names than the model's, and a model in a text.
//!
//! `cargo run --release --example 02_own_data`

use latens::record::{Layout, Mapping, Source, Table};
use latens::{Error, Job, Model, Role, Silent};

/// A tank that empties through a hole; how fast, a network has to find out.
const TANK: &str = r#"
name = "Tank"
[time]
unit = "s"
step = 1
[states.level]
derivative = "-outflow(level)"
unit = "m"
[networks.outflow]
layers = ["6 tanh"]
[measurements]
level = "level"
"#;

fn main() -> Result<(), Error> {
    // what a logger wrote: here the level of a real law, √level, rounded to tenths of a millimetre
    let mut text = String::from("time,Level [m],remark\n");
    let mut level: f64 = 1.0;
    for k in 0..200 {
        text += &format!("{k},{level:.4},\n");
        level -= 0.008 * level.sqrt();
    }
    let path = std::env::temp_dir().join("latens-example-tank.csv");
    std::fs::write(&path, text).expect("the temporary folder can be written");

    let model = Model::from_text("tank.toml", TANK)?;
    // the file's name for what the model calls `level`
    let mapping = Mapping::parse(&["level=Level [m]".to_string()])?;
    let table = Table::read(&path)?;
    let source = Source::of_table(&table, &Layout::of(&model), &mapping, None)?;
    println!("{}: {} samples", source.file, source.record.len());

    // what the record can tell, before any time is spent
    let check = latens::check(&model, std::slice::from_ref(&source.record))?;
    println!("noise of the level: {:.1e} m", check.noise[0]);

    let mut job = Job::new(model)?;
    job.add(Role::Train, source);
    let fit = job.run(&mut Silent)?.fit;
    let error = fit.facts.records[0].rmse["level"].unwrap_or(f64::NAN);
    println!("a free run follows the level to {error:.1e} m");
    Ok(())
}
