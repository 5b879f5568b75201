//! Integer expressions in attributes: lengths, values of constants, labels.

/// The largest text that is taken for an expression, in bytes.
const TEXT_BYTES_MAX: usize = 1024;
const DEPTH_MAX: usize = 32;

/// The value of an expression of integers, names, parentheses and the operators of IDL. `lookup`
/// gives the value of a name.
///
/// # Errors
/// What is wrong with it.
pub(super) fn evaluate(
    text: &str,
    lookup: &mut dyn FnMut(&str) -> Result<i128, String>,
) -> Result<i128, String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("is longer than {TEXT_BYTES_MAX} bytes"));
    }
    let mut parser = Parser {
        rest: text,
        lookup,
        depth: 0,
    };
    let value = parser.level(0)?;
    match parser.peek() {
        None => Ok(value),
        Some(c) => Err(format!("has '{}' after its end", c.escape_debug())),
    }
}

/// The binary operators by precedence, the loosest first.
const LEVELS: [&[&str]; 6] = [
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

struct Parser<'t, 'l> {
    rest: &'t str,
    lookup: &'l mut dyn FnMut(&str) -> Result<i128, String>,
    depth: usize,
}

impl<'t> Parser<'t, '_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn accept(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn level(&mut self, level: usize) -> Result<i128, String> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.level(level + 1)?;
        while let Some(operator) = operators.iter().find(|it| self.accept(it)) {
            let right = self.level(level + 1)?;
            left = apply(operator, left, right)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<i128, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("is nested deeper than {DEPTH_MAX}"));
        }
        let value = if self.accept("-") {
            apply("-", 0, self.unary()?)
        } else if self.accept("+") {
            self.unary()
        } else if self.accept("~") {
            self.unary().map(|value| !value)
        } else if self.accept("(") {
            let value = self.level(0)?;
            match self.accept(")") {
                true => Ok(value),
                false => Err("has no ')' for its '('".to_owned()),
            }
        } else {
            self.primary()
        };
        self.depth -= 1;
        value
    }

    fn primary(&mut self) -> Result<i128, String> {
        let Some(first) = self.peek() else {
            return Err("ends where a number or a name is expected".to_owned());
        };
        let word = self.word();
        if first.is_ascii_digit() {
            return number(word);
        }
        if word.is_empty() {
            return Err(format!("has '{}'", first.escape_debug()));
        }
        (self.lookup)(word)
    }

    fn word(&mut self) -> &'t str {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }
}

fn number(word: &str) -> Result<i128, String> {
    let hexadecimal = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let parsed = match hexadecimal {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => word.parse(),
    };
    parsed.map_err(|_| format!("has '{}', which is no integer", word.escape_debug()))
}

fn apply(operator: &str, left: i128, right: i128) -> Result<i128, String> {
    let shift = || u32::try_from(right).ok().filter(|bits| *bits < 64);
    let value = match operator {
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        "&" => Some(left & right),
        "<<" => shift().and_then(|bits| left.checked_mul(1 << bits)),
        ">>" => shift().map(|bits| left >> bits),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    value.ok_or_else(|| format!("has no value: {left} {operator} {right}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<i128, &str>) {
        let mut lookup = |name: &str| match name {
            "N" => Ok(8),
            "m::N" => Ok(3),
            _ => Err(format!("names '{name}'")),
        };
        let found = evaluate(text, &mut lookup);
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn expressions() {
        check("17", Ok(17));
        check("-1", Ok(-1));
        check(" ( N * 2 ) + m::N", Ok(19));
        check("1 + 2 * 3 - 4 / 2", Ok(5));
        check("1 << 4 | 0x0F & ~1", Ok(30));
        check("7 % 4 ^ 1", Ok(2));
        check("", Err("ends where a number or a name is expected"));
        check("(1", Err("has no ')' for its '('"));
        check("1 2", Err("has '2' after its end"));
        check("12a", Err("has '12a', which is no integer"));
        check("X", Err("names 'X'"));
        check("1 / 0", Err("has no value: 1 / 0"));
        check("1 << 64", Err("has no value: 1 << 64"));
        check("#", Err("has '#'"));
        check(&"(".repeat(100), Err("is nested deeper than 32"));
        check(&"1".repeat(2000), Err("is longer than 1024 bytes"));
        let most = i128::MAX.to_string();
        let expected = format!("has no value: {most} + 1");
        check(&format!("{most} + 1"), Err(&expected));
    }
}
