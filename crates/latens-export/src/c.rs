//! C99: one file and its header, without dependencies and without allocation.
//!
//! The equations come from the generator; the step, the filter and small functions are texts beside this
//! file, of which only what is used is put in.

mod network;

use std::collections::BTreeSet;

use latens::filter::extended::LOST_SCALES;
use latens::fit::stream::{DOUBTED_GAP, LONGEST_GAP, Options};
use latens::model::Method;
use latens::model::tape::{Binary, Tape, Unary};
use latens::numerics::step::{Estimate, Tableau, WHOLE_STEPS_TOLERANCE, sizes, tableau};

use crate::exported::Exported;
use crate::generate::{Function, Language, comparison, function, generate, sign};
use crate::names::{comment, digits, rows};

const HELPERS: &str = include_str!("c/helpers.c");
const STEP: &str = include_str!("c/step.c");
const FILTER: &str = include_str!("c/filter.c");
const HEADER: &str = include_str!("c/header.h");
const EULER: &str = include_str!("c/euler.c");
const SEMI_IMPLICIT_EULER: &str = include_str!("c/semi_implicit_euler.c");
const RK4: &str = include_str!("c/rk4.c");
const IMPLICIT: &str = include_str!("c/implicit.c");

/// Stands for the name of the model in these texts.
const PREFIX: &str = "PRE_";

const HELD_INPUTS: &str = "\
/* The inputs at a time of it. */
static const double *held(const interval *over, double t, double *room)
{
    double part = (t - over->start) / over->gap;
    int i;
    if (!over->next)
        return over->u;
    for (i = 0; i < M; i++)
        room[i] = over->u[i] + part * (over->next[i] - over->u[i]);
    return room;
}
";

const KEPT_INPUTS: &str = "\
/* The inputs at a time of it: they keep their value. */
static const double *held(const interval *over, double t, double *room)
{
    (void)t;
    (void)room;
    return over->u;
}
";

const CHAIN_FUNCTION: &str = "\
/* F = sub F. */
static void chain(const double *sub, matrices *m)
{
    int i;
    multiply(sub, m->F, m->W);
    for (i = 0; i < N * N; i++)
        m->F[i] = m->W[i];
}
";

/// The C file, which includes `header`.
pub fn source(exported: &Exported, header: &str) -> String {
    let model = &exported.model;
    let (n, m) = (model.states.len(), model.inputs.len());
    let mut c = C {
        exported,
        lines: vec![],
        helpers: BTreeSet::new(),
    };
    let programs = model.system.programs();
    let derivative = c.body(programs.derivative, "f", None);
    let linearised = c.body(
        programs.linearised,
        "f",
        Some((model.system.pattern(), "J")),
    );
    let outputs = c.body(programs.measurement, "y", None);
    let pattern = model.system.measure_pattern();
    let linearised_outputs = c.body(programs.linearised_measurement, "y", Some((pattern, "H")));
    let networks: String = exported
        .networks()
        .iter()
        .enumerate()
        .map(|(i, weights)| c.network(&exported.names.networks[i], weights))
        .collect();
    let helpers = c.used_helpers();
    let prefix = prefix(exported);
    let (method, chain) = match (tableau(model.method), model.method) {
        (Some(tableau), _) => (implicit(exported, tableau, &prefix), ""),
        (None, Method::Euler) => (EULER.into(), CHAIN_FUNCTION),
        (None, Method::SemiImplicitEuler) => (SEMI_IMPLICIT_EULER.into(), ""),
        (None, _) => (RK4.into(), CHAIN_FUNCTION),
    };
    let step = fill(
        STEP,
        &prefix,
        &[
            (
                "HELD",
                if exported.first_order() {
                    HELD_INPUTS
                } else {
                    KEPT_INPUTS
                },
            ),
            ("CHAIN", chain),
            ("METHOD", &method.replace(PREFIX, &prefix)),
            ("WHOLE", &number(WHOLE_STEPS_TOLERANCE)),
        ],
    );
    format!(
        "/* {}. See the header. */\n#include \"{header}\"\n\n#include <math.h>\n\n\
         enum {{ N = {n}, M = {m}, Y = {}, K = {}, ROOM = {}, SUBSTEPS = {} }};\n\n\
         const double {prefix}sample_time = {};\n\
         const double {prefix}start[N] = {{\n{}\n}};\n\
         const double {prefix}learned[K > 0 ? K : 1] = {{\n{}\n}};\n\n\
         {helpers}{}{networks}\
         void {prefix}derivative(const double *p, double t, const double *x, const double *u, double *f)\n{{\n    \
         if (!p)\n        p = {prefix}learned;\n{derivative}}}\n\n\
         static void linearise(const double *p, double t, const double *x, const double *u, double *f, double *J)\n{{\n{linearised}}}\n\n\
         void {prefix}outputs(const double *p, double t, const double *x, const double *u, double *y)\n{{\n    \
         if (!p)\n        p = {prefix}learned;\n{outputs}}}\n\n\
         static void linearise_outputs(const double *p, double t, const double *x, const double *u, double *y, double *H)\n{{\n{linearised_outputs}}}\n\n\
         {step}{}",
        comment(&exported.origin()),
        model.measurements.len(),
        exported.constants.len(),
        m.max(1),
        model.substeps,
        number(exported.dt),
        rows(&exported.start, "    ", number),
        rows(&at_least_one(&exported.constants), "    ", number),
        tables(exported),
        filter(exported, &prefix),
    )
}

/// The step of an implicit method.
fn implicit(exported: &Exported, tableau: &Tableau, prefix: &str) -> String {
    let stages = tableau.nodes.len();
    let list = |values: &[f64]| {
        let numbers: Vec<String> = values.iter().map(|v| number(*v)).collect();
        numbers.join(", ")
    };
    let row = |row: &&[f64]| {
        let mut row = row.to_vec();
        row.resize(stages, 0.0);
        format!("{{{}}}", list(&row))
    };
    let lower: Vec<String> = tableau.lower.iter().map(row).collect();
    let (halves, errors) = match tableau.error {
        Estimate::Embedded(weights) => ("0", list(weights)),
        Estimate::Halves => ("1", "0.0".into()),
    };
    fill(
        IMPLICIT,
        prefix,
        &[
            ("STAGES", &stages.to_string()),
            ("HALVES", halves),
            ("ITERATIONS", &Tableau::MOST_ITERATIONS.to_string()),
            ("FINEST", &Tableau::MOST_HALVED_LEVELS.to_string()),
            ("ATTEMPTS", &Tableau::MOST_ATTEMPTS.to_string()),
            ("HALVINGS", &Tableau::MOST_HALVINGS.to_string()),
            ("GAMMA", &number(tableau.gamma)),
            ("CONVERGED", &number(Tableau::CONVERGED_STEP_RATIO)),
            ("ROOM", &number(Tableau::DOUBLING_ERROR_PART)),
            ("DOUBLED", &number(tableau.error.doubled())),
            (
                "TOLERANCE",
                &number(exported.model.tolerance.unwrap_or(0.0)),
            ),
            ("NODES", &list(tableau.nodes)),
            ("LOWER", &lower.join(", ")),
            ("WEIGHTS", &list(tableau.weights)),
            ("ERRORS", &errors),
            ("SIZES", &rows(&sizes(&exported.model), "    ", number)),
        ],
    )
}

/// The header.
pub fn header(exported: &Exported) -> String {
    let (model, prefix) = (&exported.model, prefix(exported));
    let mut places = String::new();
    for (kind, listed) in exported.listed() {
        if listed.is_empty() {
            continue;
        }
        places += "enum {\n";
        for (i, quantity) in listed.iter().enumerate() {
            let about = match quantity.unit {
                "" => comment(quantity.name),
                unit => comment(&format!("{}, {unit}", quantity.name)),
            };
            places += &format!(
                "    {prefix}{kind}_{} = {i}, /* {about} */\n",
                quantity.plain
            );
        }
        places += "};\n\n";
    }
    let hold = if exported.first_order() {
        "u_next are the inputs of the next sample, to which they go straight; 0 holds u."
    } else {
        "u is held over it; u_next is not looked at."
    };
    let time = match model.time_unit.as_str() {
        "" => "t is the time".into(),
        unit => format!("t is the time, in {}", comment(unit)),
    };
    fill(
        HEADER,
        &prefix,
        &[
            ("ORIGIN", &comment(&exported.origin())),
            ("DESCRIPTION", &comment(&model.description)),
            ("TIME", &time),
            ("PLACES", &places),
            ("HOLD", hold),
            ("N_STATES", &model.states.len().to_string()),
            ("N_INPUTS", &model.inputs.len().to_string()),
            ("N_OUTPUTS", &model.measurements.len().to_string()),
            ("N_CONSTANTS", &model.unknowns.len().to_string()),
            ("GUARD", &format!("{}H", prefix.to_uppercase())),
            ("STAGEROOM", &stage_room(exported, &prefix)),
        ],
    )
}

/// Room for the derivatives of the stages of an implicit method.
fn stage_room(exported: &Exported, prefix: &str) -> String {
    let Some(tableau) = tableau(exported.model.method) else {
        return String::new();
    };
    let stages = tableau.nodes.len();
    format!("    double Z[{stages} * {prefix}STATES * {prefix}STATES];\n")
}

/// A text of ours with its fields, `@NAME@`, filled in: once, so that what is filled in is not looked at.
pub fn fill(template: &str, prefix: &str, fields: &[(&str, &str)]) -> String {
    let template = template.replace(PREFIX, prefix);
    let parts = template.split('@').enumerate().map(|(i, part)| {
        if i % 2 == 0 {
            return part;
        }
        let field = fields.iter().find(|(name, _)| *name == part);
        field.expect("every field has a value (tested)").1
    });
    parts.collect()
}

/// What stands before all names.
pub fn prefix(exported: &Exported) -> String {
    format!("{}_", exported.names.model)
}

/// A number as an operand.
pub fn number(value: f64) -> String {
    if value.is_nan() {
        "NAN".into()
    } else if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("({sign}INFINITY)")
    } else {
        digits(value)
    }
}

fn at_least_one(values: &[f64]) -> Vec<f64> {
    if values.is_empty() {
        vec![0.0]
    } else {
        values.to_vec()
    }
}

fn tables(exported: &Exported) -> String {
    let curves = exported.model.system.curves().iter().enumerate();
    // a table may serve the simulation alone
    let used = |i: usize| {
        let programs = exported.model.system.programs();
        [programs.linearised, programs.linearised_measurement]
            .iter()
            .any(|tape| crate::generate::uses_table(tape, i))
    };
    let array = |name: String, values: &[f64]| {
        format!(
            "static const double {name}[] = {{\n{}\n}};\n",
            rows(values, "    ", number)
        )
    };
    curves
        .filter(|(i, _)| used(*i))
        .map(|(i, curve)| {
            array(format!("table{i}_x"), &curve.x) + &array(format!("table{i}_y"), &curve.y) + "\n"
        })
        .collect()
}

fn filter(exported: &Exported, prefix: &str) -> String {
    let setting = exported.fit.stream_setting();
    let shows = exported.model.system.direct().iter();
    let shows: Vec<String> = shows
        .map(|s| s.map_or("-1".into(), |i| i.to_string()))
        .collect();
    let list = |values: &[f64]| rows(values, "    ", number);
    fill(
        FILTER,
        prefix,
        &[
            ("PROCESS", &list(&setting.noise.process)),
            ("MEASURED", &list(&setting.noise.measurement)),
            ("STARTMEAN", &list(&setting.noise.start_mean)),
            ("SCALE", &list(&setting.scale)),
            ("STARTVARIANCE", &list(&setting.noise.start)),
            ("SHOWS", &shows.join(", ")),
            ("GATE", &number(Options::default().gate)),
            ("LOST", &number(LOST_SCALES)),
            ("LONGEST", &number(LONGEST_GAP)),
            ("DOUBTED", &number(DOUBTED_GAP)),
        ],
    )
}

/// A file on its way, function by function.
struct C<'a> {
    exported: &'a Exported<'a>,
    lines: Vec<String>,
    helpers: BTreeSet<&'static str>,
}

impl C<'_> {
    /// The body of a function that fills `out`, and the entries of a matrix that are not always zero.
    fn body(
        &mut self,
        tape: &Tape,
        out: &str,
        matrix: Option<(&[(usize, usize)], &str)>,
    ) -> String {
        let model = &self.exported.model;
        let roots = generate(tape, &model.system, self);
        let mut lines = std::mem::take(&mut self.lines);
        let rows = if out == "f" {
            model.states.len()
        } else {
            model.measurements.len()
        };
        let (values, slopes) = roots.split_at(rows);
        // all at the end: what comes out may lie where something came in
        lines.extend(
            values
                .iter()
                .enumerate()
                .map(|(i, v)| format!("{out}[{i}] = {v};")),
        );
        if let Some((pattern, name)) = matrix {
            let n = model.states.len();
            lines.push(format!("for (int i = 0; i < {}; i++)", rows * n));
            lines.push(format!("    {name}[i] = 0.0;"));
            let entries = pattern.iter().zip(slopes);
            lines.extend(entries.map(|((i, j), v)| format!("{name}[{}] = {v};", i * n + j)));
        }
        let lines: String = lines.iter().map(|l| format!("    {l}\n")).collect();
        format!("    (void)p;\n    (void)t;\n    (void)x;\n    (void)u;\n{lines}")
    }

    fn need(&mut self, helper: &'static str) -> String {
        self.helpers.insert(helper);
        format!("l_{helper}")
    }

    /// The small functions that came up, and those that they use, in their order in the file.
    fn used_helpers(&self) -> String {
        let sections: Vec<(&str, &str, &str)> = HELPERS
            .split("//")
            .filter_map(|section| {
                let (head, body) = section.split_once('\n')?;
                let (name, uses) = head.split_once(':')?;
                Some((name, uses, body))
            })
            .collect();
        let mut wanted: BTreeSet<&str> = self.helpers.iter().copied().collect();
        for (name, uses, _) in &sections {
            if wanted.contains(name) {
                wanted.extend(uses.split_whitespace());
            }
        }
        let used = sections.iter().filter(|(name, ..)| wanted.contains(name));
        used.map(|(.., body)| *body).collect()
    }
}

impl C<'_> {
    fn named(&mut self, prefix: &str, name: &str, i: usize) -> String {
        let name = format!("{prefix}_{name}");
        self.lines
            .push(format!("const double {name} = {prefix}[{i}];"));
        name
    }
}

impl Language for C<'_> {
    fn number(&mut self, value: f64) -> String {
        number(value)
    }

    fn time(&mut self) -> String {
        "t".into()
    }

    fn state(&mut self, i: usize) -> String {
        self.named("x", &self.exported.names.states[i], i)
    }

    fn input(&mut self, i: usize) -> String {
        self.named("u", &self.exported.names.inputs[i], i)
    }

    fn constant(&mut self, i: usize) -> String {
        self.named("p", &self.exported.names.constants[i], i)
    }

    fn unary(&mut self, op: Unary, a: &str) -> String {
        match function(op) {
            Some(Function::Common("sign")) => format!("{}({a})", self.need("sign")),
            Some(Function::Common("abs")) => format!("fabs({a})"),
            Some(Function::Common(name)) => format!("{name}({a})"),
            Some(Function::Own(name)) => format!("{}({a})", self.need(name)),
            None if op == Unary::Not => format!("{a} == 0.0 ? 1.0 : 0.0"),
            None => format!("-{a}"),
        }
    }

    fn binary(&mut self, op: Binary, a: &str, b: &str) -> String {
        if let Some(sign) = sign(op) {
            return format!("{a} {sign} {b}");
        }
        if let Some(sign) = comparison(op) {
            return format!("{a} {sign} {b} ? 1.0 : 0.0");
        }
        match op {
            Binary::Power | Binary::VaryingPower => format!("pow({a}, {b})"),
            Binary::Atan2 => format!("atan2({a}, {b})"),
            Binary::Min => format!("{a} <= {b} ? {a} : {b}"),
            Binary::Max => format!("{b} <= {a} ? {a} : {b}"),
            Binary::And => format!("{a} != 0.0 && {b} != 0.0 ? 1.0 : 0.0"),
            _ => format!("{a} != 0.0 || {b} != 0.0 ? 1.0 : 0.0"),
        }
    }

    fn power(&mut self, a: &str, n: i32) -> String {
        if n == 2 {
            return format!("{a} * {a}");
        }
        format!("{}({a}, {n})", self.need("power"))
    }

    fn select(&mut self, condition: &str, a: &str, b: &str) -> String {
        format!("{condition} != 0.0 ? {a} : {b}")
    }

    fn lookup(&mut self, table: usize, a: &str, slope: bool) -> String {
        let curve = &self.exported.model.system.curves()[table];
        let period = number(curve.period.unwrap_or(0.0));
        let (points, slope) = (curve.x.len(), u8::from(slope));
        let function = self.need("table");
        format!("{function}({points}, table{table}_x, table{table}_y, {period}, {slope}, {a})")
    }

    fn call(&mut self, call: usize, network: usize, arguments: &[String], slopes: bool) {
        let name = &self.exported.names.networks[network];
        let outputs = self.exported.model.system.networks()[network].outputs.len();
        let count = arguments.len();
        self.lines.push(format!(
            "const double a{call}[{count}] = {{{}}};",
            arguments.join(", ")
        ));
        let slope = if slopes {
            self.lines.push(format!(
                "double c{call}[{outputs}], j{call}[{}];",
                outputs * count
            ));
            format!("j{call}")
        } else {
            self.lines.push(format!("double c{call}[{outputs}];"));
            "0".into()
        };
        self.lines
            .push(format!("network_{name}(a{call}, c{call}, {slope});"));
    }

    fn output(&mut self, call: usize, k: usize) -> String {
        format!("c{call}[{k}]")
    }

    fn slope(&mut self, call: usize, k: usize, j: usize, arguments: usize) -> String {
        format!("j{call}[{}]", k * arguments + j)
    }

    fn keep(&mut self, slot: usize, value: String) -> String {
        self.lines.push(format!("const double v{slot} = {value};"));
        format!("v{slot}")
    }
}
