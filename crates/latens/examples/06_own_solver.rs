//! A solver of your own: one type, one line of registration; progress, scores, folder and report come
//! with it.
//!
//! `cargo run --release --example 06_own_solver`

use latens::simulate::{Simulation, simulate};
use latens::solver::{Cost, Start};
use latens::{
    Error, Job, Learned, Model, Observer, PassReport, Problem, Progress, Role, Settings, Solver,
    Source, Watch, register,
};

/// Looks for better constants along one of them after another, with ever shorter steps.
struct CompassSearch;

impl Solver for CompassSearch {
    fn name(&self) -> &'static str {
        "compass"
    }

    fn about(&self) -> &'static str {
        "a search along one constant after another"
    }

    fn settings(&self) -> Settings {
        Settings {
            solver: self.name().into(),
            passes: 25,
            ..Settings::default()
        }
    }

    fn resumes(&self) -> bool {
        false
    }

    fn learn(
        &self,
        problem: &Problem,
        start: Start,
        observer: &mut dyn Observer,
    ) -> Result<Learned, Error> {
        let Start::At(mut theta) = start else {
            return Err(Error::Setting(
                "compass always starts from the guesses".into(),
            ));
        };
        let (mut best, mut step, mut reports) = (problem.error(&theta), 1.0, vec![]);
        for pass in 1..=problem.settings.passes {
            let before = best;
            for i in 0..theta.len() {
                for way in [step, -step] {
                    let old = theta[i];
                    theta[i] += way;
                    let error = problem.error(&theta);
                    // what is no number is not better
                    if error < best {
                        best = error;
                    } else {
                        theta[i] = old;
                    }
                }
            }
            if best == before {
                step /= 2.0;
            }
            let report = PassReport {
                validation: None,
                pass,
                cost: Cost::default(),
                consistency: f64::NAN,
                evidence: None,
                free_run: best,
                damping: None,
            };
            let go_on = observer.pass(&report);
            reports.push(report);
            if !go_on {
                break;
            }
        }
        Ok(Learned::of_theta(problem, theta, reports, None))
    }
}

/// Prints every pass.
struct Printer;

impl Observer for Printer {
    fn progress(&mut self, _: &Progress) -> bool {
        true
    }

    fn pass(&mut self, report: &PassReport) -> bool {
        println!(
            "pass {}: a free run errs by {:.2e} of the range",
            report.pass, report.free_run
        );
        true
    }
}

impl Watch for Printer {}

const SPRING: &str = r#"
name = "Spring"
[time]
step = 0.02
[states.q]
derivative = "v"
start = 1
[states.v]
derivative = "-stiffness*q - friction*v"
start = 0
[unknowns]
stiffness = { guess = 3, scale = 1, positive = true }
friction = { guess = 0.5, scale = 0.3, positive = true }
[measurements]
q = "q"
[truth]
stiffness = 4
friction = 0.2
[simulation]
steps = 400
"#;

fn main() -> Result<(), Error> {
    register(&CompassSearch);
    let model = Model::from_text("spring.toml", SPRING)?;
    let record = simulate(&model, &Simulation::default())?;
    let mut job = Job::new(model)?;
    job.settings = CompassSearch.settings();
    job.add(Role::Train, Source::of_record(record, &job.model)?);
    let fit = job.run(&mut Printer)?.fit;
    for constant in fit.constants() {
        println!("{} = {:.4}", constant.name, constant.value);
    }
    let page = latens_report::page::html(std::slice::from_ref(&fit));
    let path = std::env::temp_dir().join("latens-example-solver.html");
    std::fs::write(&path, page).expect("the temporary folder can be written");
    println!("its page: {}", path.display());
    Ok(())
}
