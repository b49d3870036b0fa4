//! The functions of equations, and their values in numbers.

/// Functions of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    Negate,
    Not,
    Exp,
    Expm1,
    Log,
    Log1p,
    Sqrt,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Sigmoid,
    Softplus,
    Abs,
    Sign,
    Floor,
    /// x/(1 − e^(−x)), with its limit 1 at 0.
    Linoid,
    /// Its derivative.
    LinoidSlope,
    /// sin(x)/x, with its limit 1 at 0.
    Sinc,
    /// Its derivative.
    SincSlope,
}

/// Functions of two arguments. Comparisons and logic give 1 or 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// Of an exponent that is a number.
    Power,
    /// Of an exponent that may change: a negative base is outside of its domain. At whole exponents a power of
    /// it would be a number, beside exponents at which there is none.
    VaryingPower,
    Atan2,
    Min,
    Max,
    Less,
    LessEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

impl Unary {
    #[inline]
    pub fn evaluate(self, x: f64) -> f64 {
        match self {
            Unary::Negate => -x,
            Unary::Not => f64::from(x == 0.0),
            Unary::Exp => x.exp(),
            Unary::Expm1 => x.exp_m1(),
            Unary::Log => x.ln(),
            Unary::Log1p => x.ln_1p(),
            Unary::Sqrt => x.sqrt(),
            Unary::Sin => x.sin(),
            Unary::Cos => x.cos(),
            Unary::Tan => x.tan(),
            Unary::Asin => x.asin(),
            Unary::Acos => x.acos(),
            Unary::Atan => x.atan(),
            Unary::Sinh => x.sinh(),
            Unary::Cosh => x.cosh(),
            Unary::Tanh => x.tanh(),
            Unary::Sigmoid => sigmoid(x),
            Unary::Softplus => softplus(x),
            Unary::Abs => x.abs(),
            Unary::Sign if x == 0.0 => 0.0,
            Unary::Sign => x.signum(),
            Unary::Floor => x.floor(),
            Unary::Linoid => linoid(x),
            Unary::LinoidSlope => linoid_slope(x),
            Unary::Sinc => sinc(x),
            Unary::SincSlope => sinc_slope(x),
        }
    }
}

impl Binary {
    #[inline]
    pub fn evaluate(self, x: f64, y: f64) -> f64 {
        match self {
            Binary::Add => x + y,
            Binary::Subtract => x - y,
            Binary::Multiply => x * y,
            Binary::Divide => x / y,
            Binary::Power => x.powf(y),
            Binary::VaryingPower if x < 0.0 => f64::NAN,
            Binary::VaryingPower => x.powf(y),
            Binary::Atan2 => x.atan2(y),
            Binary::Min => {
                if x <= y {
                    x
                } else {
                    y
                }
            }
            Binary::Max => {
                if y <= x {
                    x
                } else {
                    y
                }
            }
            Binary::Less => f64::from(x < y),
            Binary::LessEqual => f64::from(x <= y),
            Binary::Equal => f64::from(x == y),
            Binary::NotEqual => f64::from(x != y),
            Binary::And => f64::from(x != 0.0 && y != 0.0),
            Binary::Or => f64::from(x != 0.0 || y != 0.0),
        }
    }
}

/// 1/(1 + e^(−x)) without overflow.
#[inline]
pub fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// ln(1 + e^x) without overflow.
#[inline]
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn linoid(x: f64) -> f64 {
    if x.abs() < 1e-5 {
        1.0 + x / 2.0 + x * x / 12.0
    } else {
        -x / (-x).exp_m1()
    }
}

/// d/dx x/(1 − e^(−x)) = (1 − L·e^(−x))/(1 − e^(−x)), L the value; its series near 0, where the
/// quotient cancels.
fn linoid_slope(x: f64) -> f64 {
    if x.abs() < 0.05 {
        let s = x * x;
        0.5 + x * (1.0 / 6.0 - s * (1.0 / 180.0 - s * (1.0 / 5040.0 - s / 151_200.0)))
    } else if x > 0.0 {
        let e = (-x).exp();
        (1.0 - linoid(x) * e) / -(-x).exp_m1()
    } else {
        // multiplied through by e^x: no overflow for large negative x
        let e = x.exp();
        (e - linoid(x)) / x.exp_m1()
    }
}

fn sinc(x: f64) -> f64 {
    if x.abs() < 1e-4 {
        1.0 - x * x / 6.0
    } else {
        x.sin() / x
    }
}

fn sinc_slope(x: f64) -> f64 {
    if x.abs() < 0.05 {
        let s = x * x;
        -x * (1.0 / 3.0 - s * (1.0 / 30.0 - s * (1.0 / 840.0 - s / 45_360.0)))
    } else {
        (x.cos() - sinc(x)) / x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Closed forms in extended precision by halving: f(x) from its defining identity.
    #[test]
    fn safe_functions_are_smooth_through_zero() {
        // x/(1−e^−x) − x/2 is even; its derivative is therefore odd about 1/2
        for x in [
            1e-9, 1e-6, 9.9e-6, 1.01e-5, 1e-3, 0.049, 0.051, 0.7, 3.0, 40.0,
        ] {
            assert!((linoid(x) - x / 2.0 - (linoid(-x) + x / 2.0)).abs() < 1e-13 * linoid(x));
            assert!((linoid_slope(x) + linoid_slope(-x) - 1.0).abs() < 1e-13);
            assert!((sinc(x) - sinc(-x)).abs() == 0.0);
            assert!((sinc_slope(x) + sinc_slope(-x)).abs() < 1e-15);
        }
        for (low, high) in [(0.05 - 1e-12, 0.05 + 1e-12), (1e-5 - 1e-17, 1e-5 + 1e-17)] {
            assert!((linoid_slope(low) - linoid_slope(high)).abs() < 1e-12);
            assert!((linoid(low) - linoid(high)).abs() < 2e-12);
            assert!((sinc_slope(low) - sinc_slope(high)).abs() < 1e-11);
        }
        assert_eq!(linoid(-800.0), 0.0);
        assert_eq!(linoid(800.0), 800.0);
        assert_eq!(linoid_slope(800.0), 1.0);
        assert!(linoid_slope(-800.0).abs() < 1e-300);
    }
}
