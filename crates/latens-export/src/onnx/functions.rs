//! Functions of the model language in operations that onnxruntime has for f64: it has tan, asin, acos,
//! atan, sinh, cosh, softplus and elu for f32 alone, and nobody has expm1 and log1p.

use std::f64::consts::{FRAC_PI_2, PI};

use latens::model::tape::Unary;

use super::Onnx;
use super::protobuf::Kind;
use crate::generate::Language;

impl Onnx<'_> {
    pub(super) fn function(&mut self, op: Unary, a: &str) -> String {
        let simple = match op {
            Unary::Negate => "Neg",
            Unary::Exp => "Exp",
            Unary::Log => "Log",
            Unary::Sqrt => "Sqrt",
            Unary::Sin => "Sin",
            Unary::Cos => "Cos",
            Unary::Tanh => "Tanh",
            Unary::Sigmoid => "Sigmoid",
            Unary::Abs => "Abs",
            Unary::Sign => "Sign",
            Unary::Floor => "Floor",
            Unary::Not => {
                let zero = self.number(0.0);
                let truth = self.op("Equal", &[a, &zero]);
                return self.cast(&truth, Kind::Double);
            }
            Unary::Expm1 => return self.expm1(a),
            Unary::Log1p => return self.log1p(a),
            Unary::Softplus => return self.softplus(a),
            Unary::Tan => {
                let (sin, cos) = (self.op("Sin", &[a]), self.op("Cos", &[a]));
                return self.op("Div", &[&sin, &cos]);
            }
            Unary::Asin => return self.asin(a),
            Unary::Acos => {
                let (half, angle) = (self.number(FRAC_PI_2), self.asin(a));
                return self.op("Sub", &[&half, &angle]);
            }
            Unary::Atan => return self.atan(a),
            Unary::Sinh => return self.sinh(a),
            Unary::Cosh => {
                let (half, minus) = (self.number(0.5), self.op("Neg", &[a]));
                let (up, down) = (self.op("Exp", &[a]), self.op("Exp", &[&minus]));
                let sum = self.op("Add", &[&up, &down]);
                return self.op("Mul", &[&half, &sum]);
            }
            Unary::Linoid => return self.linoid(a),
            Unary::Sinc => return self.sinc(a),
            Unary::LinoidSlope | Unary::SincSlope => unreachable!("only derivatives hold slopes"),
        };
        self.op(simple, &[a])
    }

    /// Whether |a| is below a bound.
    fn is_near(&mut self, a: &str, bound: f64) -> String {
        let (size, bound) = (self.op("Abs", &[a]), self.number(bound));
        self.op("Less", &[&size, &bound])
    }

    /// With t = tanh(x/2): 2t/(1 − t), where 1 − t does not cancel, and e^x − 1 elsewhere.
    pub(super) fn expm1(&mut self, a: &str) -> String {
        let (one, two, half) = (self.number(1.0), self.number(2.0), self.number(0.5));
        let near = self.is_near(a, 1.0);
        let middle = self.op("Mul", &[&half, a]);
        let t = self.op("Tanh", &[&middle]);
        let (twice, rest) = (self.op("Mul", &[&two, &t]), self.op("Sub", &[&one, &t]));
        let small = self.op("Div", &[&twice, &rest]);
        let e = self.op("Exp", &[a]);
        let large = self.op("Sub", &[&e, &one]);
        self.op("Where", &[&near, &small, &large])
    }

    /// With u = 1 + x as rounded: ln u − ((u − 1) − x)/u.
    fn log1p(&mut self, a: &str) -> String {
        let one = self.number(1.0);
        let u = self.op("Add", &[&one, a]);
        let log = self.op("Log", &[&u]);
        let kept = self.op("Sub", &[&u, &one]);
        let lost = self.op("Sub", &[&kept, a]);
        let change = self.op("Div", &[&lost, &u]);
        self.op("Sub", &[&log, &change])
    }

    pub(super) fn softplus(&mut self, a: &str) -> String {
        let zero = self.number(0.0);
        let positive = self.op("Max", &[a, &zero]);
        let size = self.op("Abs", &[a]);
        let minus = self.op("Neg", &[&size]);
        let e = self.op("Exp", &[&minus]);
        let rest = self.log1p(&e);
        self.op("Add", &[&positive, &rest])
    }

    /// With E = e^|x| − 1: ±(E + E/(E + 1))/2.
    fn sinh(&mut self, a: &str) -> String {
        let (one, half) = (self.number(1.0), self.number(0.5));
        let (size, sign) = (self.op("Abs", &[a]), self.op("Sign", &[a]));
        let e = self.expm1(&size);
        let more = self.op("Add", &[&e, &one]);
        let quotient = self.op("Div", &[&e, &more]);
        let sum = self.op("Add", &[&e, &quotient]);
        let value = self.op("Mul", &[&half, &sum]);
        self.op("Mul", &[&sign, &value])
    }

    /// In f32, and what is missing: with T = tan of it, atan((x − T)/(1 + xT)), which is so small that
    /// it is its own tangent.
    fn atan(&mut self, a: &str) -> String {
        // beyond, the angle is a right one to all digits
        let (low, high) = (self.number(-1e17), self.number(1e17));
        let a = self.op("Min", &[a, &high]);
        let a = self.op("Max", &[&a, &low]);
        let single = self.cast(&a, Kind::Float);
        let rough = self.op("Atan", &[&single]);
        let rough = self.cast(&rough, Kind::Double);
        let tangent = self.function(Unary::Tan, &rough);
        let one = self.number(1.0);
        let (difference, product) = (
            self.op("Sub", &[&a, &tangent]),
            self.op("Mul", &[&a, &tangent]),
        );
        let below = self.op("Add", &[&one, &product]);
        let missing = self.op("Div", &[&difference, &below]);
        self.op("Add", &[&rough, &missing])
    }

    /// atan(x/√((1 − x)(1 + x))).
    fn asin(&mut self, a: &str) -> String {
        let one = self.number(1.0);
        let (less, more) = (self.op("Sub", &[&one, a]), self.op("Add", &[&one, a]));
        let product = self.op("Mul", &[&less, &more]);
        let root = self.op("Sqrt", &[&product]);
        let tangent = self.op("Div", &[a, &root]);
        self.atan(&tangent)
    }

    pub(super) fn atan2(&mut self, y: &str, x: &str) -> String {
        let (zero, pi, half) = (self.number(0.0), self.number(PI), self.number(FRAC_PI_2));
        let tangent = self.op("Div", &[y, x]);
        let angle = self.atan(&tangent);
        let below = self.op("Less", &[y, &zero]);
        let minus = self.number(-PI);
        let turn = self.op("Where", &[&below, &minus, &pi]);
        let turned = self.op("Add", &[&angle, &turn]);
        let is_negative = self.op("Less", &[x, &zero]);
        let aside = self.op("Equal", &[x, &zero]);
        let sign = self.op("Sign", &[y]);
        let right = self.op("Mul", &[&sign, &half]);
        let angle = self.op("Where", &[&is_negative, &turned, &angle]);
        self.op("Where", &[&aside, &right, &angle])
    }

    fn linoid(&mut self, a: &str) -> String {
        let (one, half, twelfth) = (self.number(1.0), self.number(0.5), self.number(1.0 / 12.0));
        let near = self.is_near(a, 1e-5);
        let (linear, square) = (self.op("Mul", &[&half, a]), self.op("Mul", &[a, a]));
        let square = self.op("Mul", &[&square, &twelfth]);
        let series = self.op("Add", &[&one, &linear]);
        let series = self.op("Add", &[&series, &square]);
        let far = self.op("Where", &[&near, &one, a]);
        let minus = self.op("Neg", &[&far]);
        let below = self.expm1(&minus);
        let value = self.op("Div", &[&minus, &below]);
        self.op("Where", &[&near, &series, &value])
    }

    fn sinc(&mut self, a: &str) -> String {
        let (one, sixth) = (self.number(1.0), self.number(1.0 / 6.0));
        let near = self.is_near(a, 1e-4);
        let square = self.op("Mul", &[a, a]);
        let square = self.op("Mul", &[&square, &sixth]);
        let series = self.op("Sub", &[&one, &square]);
        let far = self.op("Where", &[&near, &one, a]);
        let sin = self.op("Sin", &[&far]);
        let value = self.op("Div", &[&sin, &far]);
        self.op("Where", &[&near, &series, &value])
    }

    /// The piece of a curve that an argument lies in is the number of points at or below it.
    pub(super) fn interpolated(&mut self, table: usize, a: &str) -> String {
        let curve = &self.exported.model.system.curves()[table];
        let (x, y, n) = (&curve.x, &curve.y, curve.x.len());
        let mut pieces = vec![(x[0], y[0], 0.0)];
        for k in 1..n {
            let slope = (y[k] - y[k - 1]) / (x[k] - x[k - 1]);
            pieces.push((x[k - 1], y[k - 1], slope));
        }
        let mut at = a.to_string();
        let mut last = 0.0;
        if let Some(period) = curve.period {
            last = (y[0] - y[n - 1]) / (x[0] + period - x[n - 1]);
            let (start, period) = (self.number(x[0]), self.number(period));
            let from = self.op("Sub", &[&at, &start]);
            let turns = self.op("Div", &[&from, &period]);
            let whole = self.op("Floor", &[&turns]);
            let past = self.op("Mul", &[&whole, &period]);
            let within = self.op("Sub", &[&from, &past]);
            at = self.op("Add", &[&start, &within]);
        }
        pieces.push((x[n - 1], y[n - 1], last));
        let named = |part: &str| format!("table{table}_{part}");
        self.place(&named("points"), &[1, n], x);
        self.place(
            &named("x"),
            &[n + 1],
            &pieces.iter().map(|p| p.0).collect::<Vec<_>>(),
        );
        self.place(
            &named("y"),
            &[n + 1],
            &pieces.iter().map(|p| p.1).collect::<Vec<_>>(),
        );
        self.place(
            &named("slope"),
            &[n + 1],
            &pieces.iter().map(|p| p.2).collect::<Vec<_>>(),
        );
        let below = self.op("LessOrEqual", &[&named("points"), &at]);
        let ones = self.cast(&below, Kind::Double);
        let axis = self.whole(1);
        let count = self.op("ReduceSum", &[&ones, &axis]);
        let piece = self.cast(&count, Kind::Int64);
        let [x0, y0, slope] =
            ["x", "y", "slope"].map(|part| self.op("Gather", &[&named(part), &piece]));
        let along = self.op("Sub", &[&at, &x0]);
        let rise = self.op("Mul", &[&slope, &along]);
        self.op("Add", &[&y0, &rise])
    }
}
