//! Conditions of `#if` and `#elif`: integers, `defined`, and the operators of C.

use super::Preprocessor;
use super::macros::HAS_INCLUDE;
use crate::lex::{Token, TokenKind};
use crate::limits::MACRO_DEPTH_MAX;
use crate::source::Span;

impl Preprocessor<'_> {
    /// Whether a condition holds; an invalid one is reported and does not hold.
    pub(super) fn condition(&mut self, span: Span, arguments: &[Token]) -> bool {
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(token) = arguments.get(at) {
            if token.kind.word() == Some("defined") {
                let Some((value, length)) = self.defined(&arguments[at + 1..]) else {
                    self.sink
                        .error(token.span, "`defined` expects the name of a macro");
                    return false;
                };
                let kind = TokenKind::Integer(u64::from(value));
                tokens.push(Token {
                    kind,
                    ..token.clone()
                });
                at += 1 + length;
            } else if token.kind.word() == Some(HAS_INCLUDE) {
                let Some((value, length)) = self.has_include(&arguments[at + 1..]) else {
                    let message = "`__has_include` expects (\"file\") or (<file>)";
                    self.sink.error(token.span, message);
                    return false;
                };
                let kind = TokenKind::Integer(u64::from(value));
                tokens.push(Token {
                    kind,
                    ..token.clone()
                });
                at += 1 + length;
            } else {
                at += self.expand(arguments.get(at..).unwrap_or(&[]), &mut tokens);
            }
        }
        let mut evaluator = Evaluator {
            tokens: &tokens,
            at: 0,
            depth: 0,
        };
        let value = evaluator
            .ternary()
            .and_then(|value| match evaluator.peek() {
                None => Ok(value),
                Some(token) => Err(format!("unexpected {}", token.kind.describe())),
            });
        match value {
            Ok(value) => value != 0,
            Err(message) => {
                self.sink
                    .error(span, format!("condition of `#if`: {message}"));
                false
            }
        }
    }

    /// `X` or `( X )`: whether it is defined, and the length of the operand.
    fn defined(&self, tokens: &[Token]) -> Option<(bool, usize)> {
        let parenthesised = tokens.first()?.kind.is_punct('(');
        let name = tokens.get(usize::from(parenthesised))?.kind.word()?;
        if parenthesised && !tokens.get(2)?.kind.is_punct(')') {
            return None;
        }
        Some((
            self.macros.contains(name),
            if parenthesised { 3 } else { 1 },
        ))
    }
}

type Outcome = Result<i64, String>;

/// Binary operators by rising precedence.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

struct Evaluator<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl Evaluator<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn ternary(&mut self) -> Outcome {
        self.depth += 1;
        if self.depth > MACRO_DEPTH_MAX {
            return Err("too deeply nested".into());
        }
        let condition = self.binary(0)?;
        let value = if self.take("?") {
            let yes = self.ternary()?;
            if !self.take(":") {
                return Err("`:` is missing".into());
            }
            let no = self.ternary()?;
            if condition != 0 { yes } else { no }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(value)
    }

    /// Operators of this precedence level or higher ones.
    fn binary(&mut self, level: usize) -> Outcome {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.take(operator)) {
            let right = self.binary(level + 1)?;
            left = apply(operator, left, right)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Outcome {
        let mut signs = Vec::new();
        while let Some(sign) = ["!", "-", "+", "~"]
            .into_iter()
            .find(|sign| self.take(sign))
        {
            signs.push(sign);
        }
        let mut value = self.operand()?;
        while let Some(sign) = signs.pop() {
            value = match sign {
                "!" => i64::from(value == 0),
                "-" => value.wrapping_neg(),
                "~" => !value,
                _ => value,
            };
        }
        Ok(value)
    }

    fn operand(&mut self) -> Outcome {
        if self.take("(") {
            let value = self.ternary()?;
            return if self.take(")") {
                Ok(value)
            } else {
                Err("`)` is missing".into())
            };
        }
        let Some(token) = self.peek() else {
            return Err("an operand is missing".into());
        };
        let value = match &token.kind {
            TokenKind::Integer(value) => i64::try_from(*value).unwrap_or(i64::MAX),
            TokenKind::Char(c) => i64::from(u32::from(*c)),
            // A name that is not a macro counts as 0.
            kind if kind.word().is_some() => 0,
            kind => return Err(format!("unexpected {}", kind.describe())),
        };
        self.at += 1;
        Ok(value)
    }

    /// Consumes an operator of one or two characters, if all of it is at this position.
    fn take(&mut self, operator: &str) -> bool {
        let length = operator.len();
        let tokens = self.tokens.get(self.at..self.at + length).unwrap_or(&[]);
        let glued = tokens.iter().skip(1).all(|token| token.glued);
        let equal = tokens.len() == length
            && operator
                .chars()
                .zip(tokens)
                .all(|(c, token)| token.kind.is_punct(c));
        // `<` is not the first half of `<<`, nor `&` of `&&`.
        let longer = length == 1
            && self.tokens.get(self.at + 1).is_some_and(|next| {
                let doubled = matches!(operator, "<" | ">" | "&" | "|");
                next.glued && doubled && next.kind.is_punct(operator.chars().next().unwrap_or(' '))
            });
        if equal && glued && !longer {
            self.at += length;
        }
        equal && glued && !longer
    }
}

fn apply(operator: &str, left: i64, right: i64) -> Outcome {
    let shift = || {
        u32::try_from(right)
            .ok()
            .filter(|right| *right < 64)
            .ok_or("shift out of range")
    };
    Ok(match operator {
        "||" => i64::from(left != 0 || right != 0),
        "&&" => i64::from(left != 0 && right != 0),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "==" => i64::from(left == right),
        "!=" => i64::from(left != right),
        "<=" => i64::from(left <= right),
        ">=" => i64::from(left >= right),
        "<" => i64::from(left < right),
        ">" => i64::from(left > right),
        "<<" => left << shift()?,
        ">>" => left >> shift()?,
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        "/" => left.checked_div(right).ok_or("division by zero")?,
        _ => left.checked_rem(right).ok_or("division by zero")?,
    })
}
