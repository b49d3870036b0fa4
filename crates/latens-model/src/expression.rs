//! The language of equations: text to a syntax tree with places.
//!
//! A small Pratt parser. Binding strength, weakest first: `or`, `and`, `not`, comparison,
//! `+ -`, `* /`, unary `-`, `^` (to the right, so that `-x^2` is `-(x^2)` and `2^-1` works).

use super::diagnostic::{Diagnostic, Span};
use super::limits::{NESTING, TOKENS};

/// An expression and its place in the model file.
#[derive(Debug, Clone)]
pub struct Expr {
    pub kind: Kind,
    pub span: Span,
}

impl Expr {
    /// Stands for text with a mistake, so that what depends on it is not reported as well.
    pub(crate) fn invalid(span: Span) -> Self {
        Self {
            kind: Kind::Invalid,
            span,
        }
    }
}

/// What an expression is.
#[derive(Debug, Clone)]
pub enum Kind {
    Number(f64),
    Name(String),
    /// `f(a, b)`, or `net(a, b).first` for one of several outputs of a network.
    Call {
        name: String,
        name_span: Span,
        arguments: Vec<Expr>,
        output: Option<(String, Span)>,
    },
    Negate(Box<Expr>),
    Not(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// Text with a mistake that is reported already.
    Invalid,
}

/// An infix operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Or,
    And,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

impl Operator {
    fn compares(self) -> bool {
        use Operator::*;
        matches!(
            self,
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual
        )
    }

    /// (left, right) binding strength; right > left makes the operator associate to the left.
    fn binding(self) -> (u8, u8) {
        use Operator::*;
        match self {
            Or => (1, 2),
            And => (3, 4),
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual => (7, 8),
            Add | Subtract => (9, 10),
            Multiply | Divide => (11, 12),
            Power => (16, 14),
        }
    }
}

const BINDING_NOT: u8 = 5;
const BINDING_MINUS: u8 = 13;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Operator(Operator),
    Not,
    Open,
    Close,
    Comma,
    Dot,
}

/// Parses `text`, whose first byte stands at `offset` in the model file.
pub fn parse(text: &str, offset: usize) -> Result<Expr, Diagnostic> {
    let tokens = tokenise(text, offset)?;
    let mut parser = Parser {
        tokens: &tokens,
        next: 0,
        end: offset + text.len(),
        depth: 0,
    };
    if tokens.is_empty() {
        return Err(
            Diagnostic::new(offset..offset + text.len(), "the expression is empty")
                .help("write an equation, for example \"-k*x\""),
        );
    }
    if tokens.len() > TOKENS {
        let span = tokens[TOKENS].1.clone();
        return Err(Diagnostic::new(span, "the expression is too long")
            .help("name parts of it in [expressions]"));
    }
    let expr = parser.expression(0)?;
    match parser.tokens.get(parser.next) {
        None => Ok(expr),
        Some((Token::Close, span)) => {
            Err(Diagnostic::new(span.clone(), "this `)` closes nothing").help("remove it"))
        }
        Some((_, span)) => Err(Diagnostic::new(
            span.clone(),
            "expected an operator or the end of the expression",
        )
        .help("multiplication is written with `*`")),
    }
}

fn tokenise(text: &str, offset: usize) -> Result<Vec<(Token, Span)>, Diagnostic> {
    let mut tokens = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some(&(start, c)) = chars.peek() {
        if c.is_whitespace() {
            chars.next();
            continue;
        }
        let rest = &text[start..];
        let (token, length) = if c.is_ascii_digit()
            || (c == '.' && rest[1..].starts_with(|d: char| d.is_ascii_digit()))
        {
            let length = number_length(rest);
            let value = rest[..length]
                .parse()
                .ok()
                .filter(|v: &f64| v.is_finite())
                .ok_or_else(|| {
                    Diagnostic::new(
                        offset + start..offset + start + length,
                        "this is not a finite number",
                    )
                    .help("numbers end at 1.8e308")
                })?;
            (Token::Number(value), length)
        } else if is_name_start(c) {
            let length = rest
                .find(|c: char| !is_name_start(c) && !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let token = match &rest[..length] {
                "and" => Token::Operator(Operator::And),
                "or" => Token::Operator(Operator::Or),
                "not" => Token::Not,
                name => Token::Name(name.into()),
            };
            (token, length)
        } else {
            use Operator::*;
            match (c, rest[c.len_utf8()..].chars().next()) {
                ('<', Some('=')) => (Token::Operator(LessEqual), 2),
                ('>', Some('=')) => (Token::Operator(GreaterEqual), 2),
                ('=', Some('=')) => (Token::Operator(Equal), 2),
                ('!', Some('=')) => (Token::Operator(NotEqual), 2),
                ('*', Some('*')) => (Token::Operator(Power), 2),
                ('<', _) => (Token::Operator(Less), 1),
                ('>', _) => (Token::Operator(Greater), 1),
                ('+', _) => (Token::Operator(Add), 1),
                ('-', _) => (Token::Operator(Subtract), 1),
                ('−', _) => (Token::Operator(Subtract), c.len_utf8()),
                ('*', _) => (Token::Operator(Multiply), 1),
                ('/', _) => (Token::Operator(Divide), 1),
                ('^', _) => (Token::Operator(Power), 1),
                ('(', _) => (Token::Open, 1),
                (')', _) => (Token::Close, 1),
                (',', _) => (Token::Comma, 1),
                ('.', _) => (Token::Dot, 1),
                _ => {
                    let span = offset + start..offset + start + c.len_utf8();
                    let diagnostic =
                        Diagnostic::new(span, format!("`{c}` has no meaning in an expression"));
                    return Err(match c {
                        '=' => diagnostic.help("compare with `==`; an equation has no `=`"),
                        '!' => diagnostic.help("negate a condition with `not`"),
                        '&' => diagnostic.help("combine conditions with `and`"),
                        '|' => diagnostic.help("combine conditions with `or`, |x| is `abs(x)`"),
                        '²' => diagnostic.help("write x^2"),
                        '³' => diagnostic.help("write x^3"),
                        '×' | '·' => diagnostic.help("multiplication is written with `*`"),
                        '{' | '[' => diagnostic.help("use round brackets"),
                        _ => diagnostic
                            .help("an expression has names, numbers, brackets and + - * / ^"),
                    });
                }
            }
        };
        tokens.push((token, offset + start..offset + start + length));
        while chars.next_if(|&(i, _)| i < start + length).is_some() {}
    }
    Ok(tokens)
}

pub(crate) fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Length of the number literal that `text` starts with: digits, fraction, exponent.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut i: usize| {
        while bytes.get(i).is_some_and(u8::is_ascii_digit) {
            i += 1;
        }
        i
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    end
}

struct Parser<'a> {
    tokens: &'a [(Token, Span)],
    next: usize,
    end: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(t, _)| t)
    }

    fn span(&self) -> Span {
        self.tokens
            .get(self.next)
            .map_or(self.end..self.end, |(_, s)| s.clone())
    }

    fn previous_end(&self) -> usize {
        self.tokens[self.next - 1].1.end
    }

    fn expression(&mut self, minimum: u8) -> Result<Expr, Diagnostic> {
        self.depth += 1;
        if self.depth > NESTING {
            return Err(
                Diagnostic::new(self.span(), "the expression is nested too deeply")
                    .help("name parts of it in [expressions]"),
            );
        }
        let mut left = self.operand()?;
        while let Some(&Token::Operator(operator)) = self.peek() {
            let (binding, right_binding) = operator.binding();
            if binding < minimum {
                break;
            }
            self.next += 1;
            if operator.compares() && matches!(left.kind, Kind::Binary(o, ..) if o.compares()) {
                let span = self.tokens[self.next - 1].1.clone();
                return Err(Diagnostic::new(span, "comparisons cannot be chained")
                    .help("write `0 < x and x < 1`"));
            }
            let right = self.expression(right_binding)?;
            let span = left.span.start..right.span.end;
            left = Expr {
                kind: Kind::Binary(operator, Box::new(left), Box::new(right)),
                span,
            };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Expr, Diagnostic> {
        let start = self.span();
        let Some(token) = self.peek().cloned() else {
            return Err(
                Diagnostic::new(start, "the expression ends where a value is expected")
                    .help("complete it"),
            );
        };
        self.next += 1;
        let kind = match token {
            Token::Number(value) => Kind::Number(value),
            Token::Operator(Operator::Subtract) => {
                Kind::Negate(Box::new(self.expression(BINDING_MINUS)?))
            }
            Token::Operator(Operator::Add) => return self.expression(BINDING_MINUS),
            Token::Not => Kind::Not(Box::new(self.expression(BINDING_NOT)?)),
            Token::Open => {
                let inner = self.expression(0)?;
                self.close(&start)?;
                inner.kind
            }
            Token::Name(name) if self.peek() == Some(&Token::Open) => self.call(name, &start)?,
            Token::Name(name) => Kind::Name(name),
            _ => {
                return Err(Diagnostic::new(start, "expected a value here").help(
                    "a value is a number, a name, a function call or an expression in brackets",
                ));
            }
        };
        Ok(Expr {
            kind,
            span: start.start..self.previous_end(),
        })
    }

    fn call(&mut self, name: String, name_span: &Span) -> Result<Kind, Diagnostic> {
        let open = self.span();
        self.next += 1;
        let mut arguments = Vec::new();
        if self.peek() != Some(&Token::Close) {
            arguments.push(self.expression(0)?);
            while self.peek() == Some(&Token::Comma) {
                self.next += 1;
                arguments.push(self.expression(0)?);
            }
        }
        self.close(&open)?;
        let mut output = None;
        if self.peek() == Some(&Token::Dot) {
            self.next += 1;
            let span = self.span();
            match self.peek().cloned() {
                Some(Token::Name(o)) => output = Some((o, span)),
                _ => {
                    return Err(
                        Diagnostic::new(span, "expected the name of an output after `.`")
                            .help("one of several outputs is written `network(…).name`"),
                    );
                }
            }
            self.next += 1;
        }
        Ok(Kind::Call {
            name,
            name_span: name_span.clone(),
            arguments,
            output,
        })
    }

    fn close(&mut self, open: &Span) -> Result<(), Diagnostic> {
        if self.peek() == Some(&Token::Close) {
            self.next += 1;
            Ok(())
        } else if self.peek().is_none() {
            Err(Diagnostic::new(open.clone(), "this `(` is never closed").help("add `)`"))
        } else {
            Err(
                Diagnostic::new(self.span(), "expected an operator, `,` or `)`")
                    .help("multiplication is written with `*`"),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fully bracketed text of an expression.
    fn show(e: &Expr) -> String {
        match &e.kind {
            Kind::Number(v) => v.to_string(),
            Kind::Name(n) => n.clone(),
            Kind::Call {
                name,
                arguments,
                output,
                ..
            } => {
                let arguments: Vec<_> = arguments.iter().map(show).collect();
                let output = output
                    .as_ref()
                    .map_or(String::new(), |o| format!(".{}", o.0));
                format!("{name}({}){output}", arguments.join(","))
            }
            Kind::Negate(a) => format!("(-{})", show(a)),
            Kind::Not(a) => format!("(not {})", show(a)),
            Kind::Binary(o, a, b) => format!("({} {o:?} {})", show(a), show(b)),
            Kind::Invalid => "?".into(),
        }
    }

    #[test]
    fn precedence_is_that_of_mathematics() {
        for (text, expected) in [
            ("-x^2", "(-(x Power 2))"),
            ("2^-3^2", "(2 Power (-(3 Power 2)))"),
            ("a - b - c", "((a Subtract b) Subtract c)"),
            ("a/b*c", "((a Divide b) Multiply c)"),
            ("-a*b", "((-a) Multiply b)"),
            ("not a < b and c", "((not (a Less b)) And c)"),
            ("1e-3*x.5", ""),
            ("f(a, -b).second", "f(a,(-b)).second"),
            ("a ** b", "(a Power b)"),
            ("x1e5", "x1e5"),
            ("2 − 1", "(2 Subtract 1)"),
        ] {
            match parse(text, 0) {
                Ok(e) => assert_eq!(show(&e), expected, "{text}"),
                Err(d) => assert!(expected.is_empty(), "{text}: {d:?}"),
            }
        }
    }

    #[test]
    fn mistakes_carry_their_place() {
        for (text, at, word) in [
            ("a + ", 4, "ends"),
            ("a b", 2, "operator"),
            ("(a + b", 0, "never closed"),
            ("a)", 1, "closes nothing"),
            ("a = b", 2, "no meaning"),
            ("f(a,)", 4, "expected a value"),
            ("0 < x < 1", 6, "chained"),
            ("1 + 1e999", 4, "finite"),
            ("", 0, "empty"),
        ] {
            let d = parse(text, 100).unwrap_err();
            assert_eq!(d.span.start, 100 + at, "{text}: {d:?}");
            assert!(d.message.contains(word), "{text}: {d:?}");
        }
        assert!(parse(&"(".repeat(100_000), 0).is_err());
    }
}
