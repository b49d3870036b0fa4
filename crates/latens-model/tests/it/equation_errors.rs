//! A user's mistakes in equations and names: each is found, at its place, with advice, and alone.

use crate::mistakes::{expect, expect_in, mistakes};
use latens_model::Model;

/// One mistake in the equation of x; with a constant, an input, a network and a table at hand.
fn expect_equation(equation: &str, message: &str, help: &str) {
    expect(
        &format!(
            "[constants]\nstiffness = 2\n[inputs]\nu = \"N\"\n[tables.curve]\nx = [0, 1]\ny = [0, 1]\n\
             [networks.pull]\nlayers = [\"3 tanh\"]\noutputs = [\"left\", \"right\"]\n\
             [states.v]\nderivative = \"pull(x, v).left\"\n\
             [measurements]\ny = \"x\"\n[states.x]\nderivative = \"{equation}\"\n"
        ),
        &[(message, help)],
    );
}

#[test]
fn names_that_do_not_exist() {
    expect_equation(
        "-§stifness*x",
        "unknown name `stifness`",
        "did you mean `stiffness`?",
    );
    expect_equation("v + §Q", "unknown name `Q`", "define it in [constants]");
    expect_equation("§sqr(x)", "unknown function `sqr`", "did you mean `sqrt`?");
    expect_equation(
        "§pul(x, v).left",
        "unknown function `pul`",
        "did you mean `pull`?",
    );
    expect_equation("§ln(x)", "unknown function `ln`", "log(x)");
    expect_equation("§pow(x, 2)", "unknown function `pow`", "x^y");
    expect_equation(
        "§erf(x)",
        "unknown function `erf`",
        "built in are abs, acos",
    );
    expect_equation("§sin", "`sin` is a function", "sin(…)");
    expect_equation("§curve*x", "`curve` is a function", "curve(…)");
    expect_equation(
        "§stiffness(x - v)",
        "`stiffness` is not a function",
        "stiffness*(…)",
    );
    expect_equation("§t(x)", "`t` is not a function", "t*(…)");
}

#[test]
fn arguments_and_outputs() {
    expect_equation("§sin(x, v)", "`sin` takes 1 argument, not 2", "sin(x)");
    expect_equation(
        "§if(x > 0, 1)",
        "`if` takes 3 arguments, not 2",
        "if(condition, then, else)",
    );
    expect_equation(
        "§smooth_max(x, v)",
        "takes 3 arguments, not 2",
        "smooth_max(a, b, width)",
    );
    expect_equation(
        "§curve(x, v)",
        "`curve` takes 1 argument, not 2",
        "curve(x)",
    );
    expect_equation("sin(x).§left", "`sin` has one output", "only networks");
    expect_equation(
        "§pull(x, v, u).left",
        "3 arguments here and 2 elsewhere",
        "same number",
    );
    expect_equation("§pull().left", "without arguments", "[unknowns]");
    expect_equation(
        "§pull(x, v)",
        "has 2 outputs",
        "pull(…).left or pull(…).right",
    );
    expect_equation("pull(x, v).§up", "no output `up`", "left, right");
    expect_equation("pull(x, v).§*2", "name of an output", "network(…).name");
}

#[test]
fn equations_that_cannot_be_read() {
    expect_equation("-stiffness*§(x + v", "this `(` is never closed", "add `)`");
    expect_equation("sin§(x + (v)", "this `(` is never closed", "add `)`");
    expect_equation("x + v§)", "this `)` closes nothing", "remove it");
    expect_equation("2§x", "expected an operator", "`*`");
    expect_equation("sin(2 §x)", "expected an operator, `,` or `)`", "`*`");
    expect_equation("x +§", "ends where a value is expected", "complete it");
    expect_equation("x + §*v", "expected a value", "a number, a name");
    expect_equation("x §= 2", "`=` has no meaning", "`==`");
    expect_equation("if(x > 0 §&& v > 0, 1, 2)", "`&` has no meaning", "`and`");
    expect_equation(
        "if(0 < x §< 1, 1, 2)",
        "cannot be chained",
        "0 < x and x < 1",
    );
    expect_equation("§1e999*x", "not a finite number", "1.8e308");
    expect_equation("µ§² + x", "`²` has no meaning", "x^2");
}

#[test]
fn algebraic_loops_show_their_path() {
    let equations =
        "[states.x]\nderivative = \"c\"\n[measurements]\ny = \"x + b\"\n[truth]\nx = \"b\"\n";
    expect(
        &format!("[expressions]\na = \"§2*b\"\nb = \"c + 1\"\nc = \"sin(a)\"\n{equations}"),
        &[(
            "algebraic loop: a → b → c → a",
            "break the loop with a state",
        )],
    );
    expect_in(
        "[expressions]\na = \"§a + x\"",
        "algebraic loop: a → a",
        "state",
    );
    expect_in(
        "[constants]\nk = \"§2*l\"\nl = \"k\"",
        "algebraic loop: k → l → k",
        "depend on itself",
    );
}

#[test]
fn names_that_cannot_be_given() {
    expect_in(
        "[constants]\nk = 1\n[inputs]\n§k = \"\"",
        "`k` is taken by a constant",
        "share one set of names",
    );
    expect_in(
        "[tables]\nf = { x = [0], y = [0] }\n[expressions]\n§f = 2",
        "taken by a table",
        "share",
    );
    expect_in("[constants]\n§t = 1", "`t` is reserved", "another name");
    expect_in("[constants]\n§sin = 1", "`sin` is reserved", "another name");
    expect_in(
        "[constants]\n§truth_k = 1",
        "`truth_k` is reserved",
        "another name",
    );
    expect_in(
        "[constants]\n§2k = 1",
        "`2k` cannot be used in an equation",
        "letters",
    );
    expect_in(
        "[constants]\n§k-1 = 1",
        "`k-1` cannot be used in an equation",
        "letters",
    );
    expect_in(
        "[constants]\n§\"k₁\" = 1",
        "`k₁` cannot be used in an equation",
        "letters",
    );
    expect_in("[constants]\nk = 1\n§k = 2", "duplicate key", "stands once");
    expect_in(
        "[inputs]\n§y = \"V\"",
        "`y` is an input and a measurement",
        "rename",
    );
}

#[test]
fn things_in_the_wrong_place() {
    expect_in(
        "[constants]\nk = \"2*§x\"",
        "`x` is not a constant",
        "numbers and other constants",
    );
    expect_in(
        "[constants]\nk = \"2*§t\"",
        "`t` is not a constant",
        "numbers and other constants",
    );
    expect_in(
        "[inputs]\nu = \"\"\n[simulation.inputs]\nu = \"2*§u\"",
        "the input `u`",
        "expressions of t",
    );
}

#[test]
fn hostile_equations_are_mistakes_not_crashes() {
    let model = |equation: &str| {
        format!("[states.x]\nderivative = \"{equation}\"\n[measurements]\ny = \"x\"\n")
    };
    for equation in [
        "(".repeat(1000),
        "-".repeat(1000),
        "sin(".repeat(1000),
        "2^".repeat(1000),
    ] {
        let error = mistakes(&model(&equation));
        assert!(
            error.diagnostics[0].message.contains("nested too deeply"),
            "{:?}",
            error.diagnostics
        );
    }
    let sum = |terms: usize| vec!["x"; terms].join(" + ");
    assert!(Model::from_text("m.toml", &model(&sum(2500))).is_ok());
    let error = mistakes(&model(&sum(100_000)));
    assert!(
        error.diagnostics[0].message.contains("too long"),
        "{:?}",
        error.diagnostics
    );
}
