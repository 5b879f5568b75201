//! Literals: IDL 4.2 §7.2.6.

use super::{Lexer, TokenKind, error};
use crate::limits::STRING_BYTES_MAX;

impl Lexer<'_> {
    /// Integers in three bases, floating-point and fixed-point literals. A misplaced
    /// letter or digit becomes part of one invalid token.
    pub(super) fn number(&mut self) -> TokenKind {
        let start = self.at;
        if self.rest().starts_with("0x") || self.rest().starts_with("0X") {
            self.bump_while(|c| c.is_ascii_alphanumeric() || c == '_');
            let digits = self.since(start).get(2..).unwrap_or("");
            return integer(digits, 16, self.since(start));
        }
        self.bump_while(|c| c.is_ascii_digit());
        let mut real = false;
        if self.peek() == Some('.') {
            real = true;
            self.bump();
            self.bump_while(|c| c.is_ascii_digit());
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            real = true;
            self.bump();
            if matches!(self.peek(), Some('+' | '-')) {
                self.bump();
            }
        }
        self.bump_while(|c| c.is_ascii_alphanumeric() || c == '_');
        let all = self.since(start);
        if let Some(digits) = all.strip_suffix(['d', 'D']) {
            let numeric = digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.');
            return if numeric && digits != "." {
                TokenKind::Fixed(digits.into())
            } else {
                no_number(all)
            };
        }
        if real {
            // The type of the constant decides whether the value fits.
            return match all.parse::<f64>() {
                Ok(_) => TokenKind::Float(all.into()),
                Err(_) => no_number(all),
            };
        }
        match all.strip_prefix('0').filter(|digits| !digits.is_empty()) {
            Some(octal) => integer(octal, 8, all),
            None => integer(all, 10, all),
        }
    }

    pub(super) fn char_literal(&mut self, wide: bool) -> TokenKind {
        let Some(text) = self.quoted('\'') else {
            return error("unterminated character literal");
        };
        let text = match text {
            Ok(text) => text,
            Err(message) => return error(message),
        };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) if wide => TokenKind::WideChar(c),
            (Some(c), None) => TokenKind::Char(c),
            (None, _) => error("empty character literal"),
            _ => error("character literal of more than one character"),
        }
    }

    pub(super) fn text_literal(&mut self, wide: bool) -> TokenKind {
        match self.quoted('"') {
            None => error("unterminated string literal"),
            Some(Err(message)) => error(message),
            Some(Ok(text)) if text.len() > STRING_BYTES_MAX => error(format!(
                "string literal of more than {STRING_BYTES_MAX} bytes"
            )),
            Some(Ok(text)) if text.contains('\0') => error("string literal with a NUL in it"),
            Some(Ok(text)) if wide => TokenKind::WideText(text.into()),
            Some(Ok(text)) => TokenKind::Text(text.into()),
        }
    }

    /// The text between two quotes, or what is wrong with an escape in it; `None`
    /// when the closing quote is missing. Consumes the whole literal either way.
    fn quoted(&mut self, quote: char) -> Option<Result<String, String>> {
        let mut text = String::new();
        let mut wrong = None;
        self.bump();
        loop {
            match self.peek() {
                None | Some('\n') => return None,
                Some(c) if c == quote => {
                    self.bump();
                    return Some(wrong.map_or(Ok(text), Err));
                }
                Some('\\') if self.joins() => self.join(),
                Some('\\') => match self.escape() {
                    Ok(c) => text.push(c),
                    Err(message) => wrong = wrong.or(Some(message)),
                },
                Some(c) => {
                    self.bump();
                    text.push(c);
                }
            }
        }
    }

    /// §7.2.6.2.1, table 7-9.
    fn escape(&mut self) -> Result<char, String> {
        self.bump();
        let Some(c) = self.peek() else {
            return Err("escape sequence that does not end".into());
        };
        if c.is_digit(8) {
            let code = self.code(3, 8);
            return match u8::try_from(code) {
                Ok(byte) => Ok(char::from(byte)),
                Err(_) => Err(format!("octal escape of {code}, which is more than 255")),
            };
        }
        self.bump();
        let next_is_hex = self.peek().is_some_and(|next| next.is_ascii_hexdigit());
        Ok(match c {
            'n' => '\n',
            't' => '\t',
            'v' => '\u{B}',
            'b' => '\u{8}',
            'r' => '\r',
            'f' => '\u{C}',
            'a' => '\u{7}',
            '\\' | '?' | '\'' | '"' => c,
            'x' if next_is_hex => char::from(u8::try_from(self.code(2, 16)).unwrap_or(0)),
            // The standard allows it in wide literals only; ROS 2 uses it in others too.
            'u' if next_is_hex => return self.unit(),
            _ => return Err(format!("unknown escape sequence `\\{}`", c.escape_debug())),
        })
    }

    /// After `\u`: a character, or the two halves of a surrogate pair.
    fn unit(&mut self) -> Result<char, String> {
        let first = self.code(4, 16);
        let mut units = vec![u16::try_from(first).unwrap_or(0)];
        if (0xD800..0xDC00).contains(&first) && self.rest().starts_with("\\u") {
            self.bump();
            self.bump();
            units.push(u16::try_from(self.code(4, 16)).unwrap_or(0));
        }
        let mut chars = char::decode_utf16(units);
        match (chars.next(), chars.next()) {
            (Some(Ok(c)), None) => Ok(c),
            _ => Err(format!("`\\u{first:x}` is half of a character")),
        }
    }

    /// At most `digits` digits of a character code.
    fn code(&mut self, digits: usize, base: u32) -> u32 {
        let mut code = 0;
        for _ in 0..digits {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(base)) else {
                break;
            };
            self.bump();
            code = code * base + digit;
        }
        code
    }
}

fn integer(digits: &str, base: u32, all: &str) -> TokenKind {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return match base {
            8 if digits.bytes().all(|byte| byte.is_ascii_digit()) => error(format!(
                "`{all}` begins with 0 and so is octal, but has a digit 8 or 9"
            )),
            _ => no_number(all),
        };
    }
    match u64::from_str_radix(digits, base) {
        Ok(value) => TokenKind::Integer(value),
        Err(_) => error(format!("`{all}` does not fit in 64 bits")),
    }
}

fn no_number(all: &str) -> TokenKind {
    error(format!("`{all}` is not a number"))
}
