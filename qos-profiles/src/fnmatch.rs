//! Names matched against patterns as POSIX `fnmatch` does (IEEE 1003.1 §2.13).
//!
//! `*` stands for any run, `?` for any one character, `[a-z]` and `[!a-z]` for
//! one character in or out of a set, `\` takes the next character literally.
//! Slashes and leading dots are nothing special. One remembered star is enough,
//! so matching takes at most length of pattern times length of name.

/// Whether `name` matches `pattern`.
pub fn fnmatch(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&'*') {
            retry = Some((p + 1, n));
            p += 1;
            continue;
        }
        let step = match (pattern.get(p), name.get(n)) {
            (None, None) => return true,
            (Some(_), Some(&c)) => match_one(&pattern[p..], c),
            _ => None,
        };
        match (step, retry) {
            (Some(consumed), _) => {
                p += consumed;
                n += 1;
            }
            (None, Some((after_star, taken))) if taken < name.len() => {
                retry = Some((after_star, taken + 1));
                p = after_star;
                n = taken + 1;
            }
            _ => return false,
        }
    }
}

/// Whether `name` contains a wildcard that is not escaped.
pub(crate) fn is_pattern(name: &str) -> bool {
    let mut escaped = false;
    for c in name.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '*' | '?' | '[' => return true,
            _ => {}
        }
    }
    false
}

/// How many pattern characters stand for the one character `c`, if they do.
fn match_one(pattern: &[char], c: char) -> Option<usize> {
    match pattern[0] {
        '?' => Some(1),
        '[' => match bracket(pattern, c) {
            Some((consumed, matched)) => matched.then_some(consumed),
            None => (c == '[').then_some(1),
        },
        '\\' => match pattern.get(1) {
            Some(&literal) => (literal == c).then_some(2),
            None => (c == '\\').then_some(1),
        },
        literal => (literal == c).then_some(1),
    }
}

/// Reads the bracket expression at the start of `pattern`: its length and
/// whether it contains `c`; `None` when it is not closed.
fn bracket(pattern: &[char], c: char) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = if negated { 2 } else { 1 };
    let mut at = first;
    let mut found = false;
    loop {
        let (low, next) = match *pattern.get(at)? {
            ']' if at > first => return Some((at + 1, found != negated)),
            '\\' => (*pattern.get(at + 1)?, at + 2),
            literal => (literal, at + 1),
        };
        let range_end = match (pattern.get(next), pattern.get(next + 1)) {
            (Some('-'), Some(&high)) if high != ']' => Some(high),
            _ => None,
        };
        found |= low <= c && c <= range_end.unwrap_or(low);
        at = if range_end.is_some() { next + 2 } else { next };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        for name in matching {
            assert!(fnmatch(pattern, name), "{pattern:?} should match {name:?}");
        }
        for name in others {
            assert!(
                !fnmatch(pattern, name),
                "{pattern:?} should not match {name:?}"
            );
        }
    }

    #[test]
    fn patterns() {
        check("", &[""], &["a"]);
        check("*", &["", "a", "a/b", ".hidden"], &[]);
        check("a*b*c", &["abc", "aXbYc", "abbcc"], &["ab", "abcd", ""]);
        check("?x", &["ax", "äx"], &["x", "abx"]);
        check("[a-c]1", &["a1", "c1"], &["d1", "1", "a2"]);
        check("[!a-c]1", &["d1"], &["a1"]);
        check("[]x]", &["]", "x"], &["y"]);
        check("[a-]", &["a", "-"], &["b"]);
        check("[a", &["[a"], &["a"]);
        check(r"\*", &["*"], &["a", r"\*"]);
        check(r"a\", &[r"a\"], &["a"]);
        check("Fleet::*", &["Fleet::Track"], &["Fleet"]);
    }

    #[test]
    fn a_long_run_of_stars_ends_soon() {
        let pattern = "*a".repeat(1000) + "b";
        assert!(!fnmatch(&pattern, &"a".repeat(2000)));
    }

    #[test]
    fn wildcards() {
        for name in ["*", "a?", "[x]", r"a\\*"] {
            assert!(is_pattern(name), "{name}");
        }
        for name in ["", "plain", r"\*", "]"] {
            assert!(!is_pattern(name), "{name}");
        }
    }
}
