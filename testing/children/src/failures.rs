//! Failures of processes in words.

use std::fmt::Display;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How a process failed; `None` if it succeeded.
pub fn describe_failure(status: ExitStatus) -> Option<String> {
    match (status.success(), status.signal()) {
        (true, _) => None,
        (false, Some(signal)) => Some(format!("was killed by signal {signal}")),
        (false, None) => Some(format!("ended with {status}")),
    }
}

/// The failures of processes out of `all`: a line for each error, with the processes that report it
/// unless all do.
pub fn group_by_error<R: Display>(failures: &[(R, String)], all: usize) -> String {
    let mut errors: Vec<(&str, Vec<String>)> = Vec::new();
    for (role, error) in failures {
        match errors.iter_mut().find(|(known, _)| known == error) {
            Some((_, roles)) => roles.push(role.to_string()),
            None => errors.push((error, vec![role.to_string()])),
        }
    }
    let lines = errors
        .iter()
        .map(|(error, roles)| match roles.len() == all {
            true => (*error).to_owned(),
            false => format!("{}: {error}", roles.join(", ")),
        });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_signal_or_the_code() {
        let check = |raw, expected: Option<&str>| {
            let described = describe_failure(ExitStatus::from_raw(raw));
            assert_eq!(described.as_deref(), expected);
        };
        check(0, None);
        check(9, Some("was killed by signal 9"));
        check(3 << 8, Some("ended with exit status: 3"));
    }

    #[test]
    fn equal_errors_are_one_line() {
        let check = |failures: &[(&str, &str)], expected: &str| {
            let failures = failures
                .iter()
                .map(|(role, error)| (*role, (*error).into()));
            assert_eq!(group_by_error(&failures.collect::<Vec<_>>(), 3), expected);
        };
        check(&[("a", "x"), ("b", "y"), ("c", "x")], "a, c: x\nb: y");
        check(&[("a", "x"), ("b", "x"), ("c", "x")], "x");
        check(&[("b", "y")], "b: y");
    }
}
