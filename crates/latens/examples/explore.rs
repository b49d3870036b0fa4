use latens::solve::*;
use latens::{Model, simulate::*, systems};
struct P(std::time::Instant, bool);
impl Observer for P {
    fn epoch(&mut self, r: &EpochReport) -> bool {
        if self.1 {
            println!(
                "  {:2} {:6.1}s phys {:.3e} data {:.3e} drift {:.3e} prior {:.3e} nis {:.3} free {:.3e}",
                r.epoch,
                self.0.elapsed().as_secs_f64(),
                r.cost.physics,
                r.cost.data,
                r.cost.drift,
                r.cost.prior,
                r.consistency,
                r.free_run
            );
        }
        true
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let name = &a[1];
    let solver = Solver::NAMES.iter().find(|(n, _)| *n == a[2]).unwrap().1;
    let mut s = Settings::new(solver);
    let mut verbose = true;
    let mut seeds = vec![1u64];
    let mut steps = None;
    for kv in &a[3..] {
        let (k, v) = kv.split_once('=').unwrap();
        let f = || v.parse::<f64>().unwrap();
        match k {
            "printed" => {
                s = Settings::printed(solver);
            }
            "epochs" => s.epochs = f() as usize,
            "streams" => s.streams = f() as usize,
            "known" => s.known = Level::Relative(f()),
            "hidden" => s.hidden = Level::Relative(f()),
            "r" => s.measurement = Level::Relative(f()),
            "pv" => s.parameter_variance = f(),
            "drift" => s.parameter_drift = f(),
            "anneal" => s.anneal = f(),
            "pn" => s.parameter_noise = f(),
            "csu" => s.count_state_uncertainty = f() != 0.0,
            "reopen" => s.reopen = f() != 0.0,
            "so" => s.scale_outputs = f() != 0.0,
            "best" => s.keep_best = f() != 0.0,
            "single" => s.single_precision = f() != 0.0,
            "v" => verbose = f() != 0.0,
            "seeds" => seeds = (1..=f() as u64).collect(),
            "seed" => seeds = vec![f() as u64],
            "steps" => steps = Some(f() as usize),
            _ => panic!("{k}"),
        }
    }
    let model = Model::from_text(name, systems::find(name).unwrap()).unwrap();
    let record = simulate(
        &model,
        &Simulation {
            steps,
            ..Default::default()
        },
    )
    .unwrap();
    for seed in seeds {
        s.seed = seed;
        let t = std::time::Instant::now();
        match fit(
            &model,
            std::slice::from_ref(&record),
            &s,
            &mut P(t, verbose),
        ) {
            Err(e) => println!("{name} {} seed {seed}: {e}", solver.name()),
            Ok(f) => {
                let e = &f.estimates[0];
                let smooth: Vec<String> = (0..model.states.len())
                    .map(|i| {
                        format!(
                            "{:.1e}",
                            latens::score::nrmse(
                                &e.smoothed.states,
                                record.truth.as_ref().unwrap(),
                                i,
                                model.states.len()
                            )
                            .unwrap()
                        )
                    })
                    .collect();
                println!(
                    "{name} {} seed {seed}: MEAN {:.3e} states {:?} smoothed {:?} {:.1}s scale {:?} tau {:.3} noise {:?}",
                    solver.name(),
                    e.mean().unwrap(),
                    e.states
                        .iter()
                        .map(|x| format!("{:.1e}", x.unwrap()))
                        .collect::<Vec<_>>(),
                    smooth,
                    t.elapsed().as_secs_f64(),
                    f.nominal.scale,
                    f.nominal.time_constant,
                    f.nominal.noise
                );
            }
        }
    }
}
