//! Constant expressions: IDL 4.2 §7.4.1.4.3.

use super::{Abandoned, Parsed, Parser};
use crate::ast::{Expr, ExprKind};
use crate::lex::TokenKind;
use crate::limits::{OPERATORS_MAX, STRING_BYTES_MAX};
use crate::source::Span;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        let mut operators = 0;
        self.binary(0, &mut operators)
    }

    /// An expression before a `>`, in which a right shift needs parentheses.
    pub(super) fn template_bound(&mut self) -> Parsed<Expr> {
        let outer = std::mem::replace(&mut self.in_template, true);
        let bound = self.expression();
        self.in_template = outer;
        bound
    }

    /// Operators of at least this precedence. `operators` bounds the size of the
    /// tree, and with it the depth of every recursion over it.
    fn binary(&mut self, lowest: u8, operators: &mut usize) -> Parsed<Expr> {
        let mut left = self.unary(operators)?;
        while let Some((operator, precedence)) = self.operator() {
            if precedence < lowest {
                break;
            }
            self.count(operators)?;
            self.bump();
            if matches!(operator, '<' | '>') {
                self.bump();
            }
            let right = self.nested(|parser| parser.binary(precedence + 1, operators))?;
            let span = left.span.to(right.span);
            let kind = ExprKind::Binary(operator, Box::new(left), Box::new(right));
            left = Expr { kind, span };
        }
        Ok(left)
    }

    fn count(&mut self, operators: &mut usize) -> Parsed<()> {
        *operators += 1;
        if *operators <= OPERATORS_MAX {
            return Ok(());
        }
        let message = format!("more than {OPERATORS_MAX} operators in one expression");
        self.sink
            .error_hint(self.span(), message, "name parts of it by constants");
        Err(Abandoned)
    }

    /// The binary operator at this position, with its precedence.
    fn operator(&self) -> Option<(char, u8)> {
        let TokenKind::Punct(c) = self.kind() else {
            return None;
        };
        let precedence = match c {
            '|' => 0,
            '^' => 1,
            '&' => 2,
            '>' if self.in_template => return None,
            '<' | '>' if self.at_pair(*c) => 3,
            '+' | '-' => 4,
            '*' | '/' | '%' => 5,
            _ => return None,
        };
        Some((*c, precedence))
    }

    fn unary(&mut self, operators: &mut usize) -> Parsed<Expr> {
        let start = self.span();
        let TokenKind::Punct(operator @ ('-' | '+' | '~')) = self.kind() else {
            return self.primary(operators);
        };
        self.count(operators)?;
        self.bump();
        let operand = self.nested(|parser| parser.unary(operators))?;
        let span = start.to(operand.span);
        Ok(Expr {
            kind: ExprKind::Unary(*operator, Box::new(operand)),
            span,
        })
    }

    fn primary(&mut self, operators: &mut usize) -> Parsed<Expr> {
        let span = self.span();
        let kind = match self.kind() {
            TokenKind::Integer(value) => ExprKind::Integer(*value),
            TokenKind::Float(text) => ExprKind::Float(text.clone()),
            TokenKind::Fixed(text) => ExprKind::Fixed(text.clone()),
            TokenKind::Keyword("TRUE") => ExprKind::Boolean(true),
            TokenKind::Keyword("FALSE") => ExprKind::Boolean(false),
            TokenKind::Char(c) => ExprKind::Char(*c),
            TokenKind::WideChar(c) => ExprKind::WideChar(*c),
            TokenKind::Text(_) | TokenKind::WideText(_) => return self.text(span),
            TokenKind::Identifier(_) | TokenKind::Scope => {
                let name = self.scoped_name("a constant")?;
                return Ok(Expr {
                    span: name.span,
                    kind: ExprKind::Name(name),
                });
            }
            TokenKind::Punct('(') => {
                self.bump();
                let outer = std::mem::replace(&mut self.in_template, false);
                let inner = self.nested(|parser| parser.binary(0, operators));
                self.in_template = outer;
                let inner = inner?;
                self.expect(')')?;
                return Ok(Expr {
                    span: span.to(self.previous_span()),
                    ..inner
                });
            }
            _ => return self.expected("a constant expression"),
        };
        self.bump();
        Ok(Expr { kind, span })
    }

    /// Adjacent string literals form one, which is wide if one of them is.
    fn text(&mut self, start: Span) -> Parsed<Expr> {
        let mut text = String::new();
        let mut wide = false;
        loop {
            match self.kind() {
                TokenKind::Text(piece) => text.push_str(piece),
                TokenKind::WideText(piece) => {
                    wide = true;
                    text.push_str(piece);
                }
                _ => break,
            }
            if text.len() > STRING_BYTES_MAX {
                let message = format!("string of more than {STRING_BYTES_MAX} bytes");
                self.sink.error(start, message);
                return Err(Abandoned);
            }
            self.bump();
        }
        let span = start.to(self.previous_span());
        let kind = match wide {
            true => ExprKind::WideText(text.into()),
            false => ExprKind::Text(text.into()),
        };
        Ok(Expr { kind, span })
    }
}
