//! Failures that are known: what the product does not do right yet.
//!
//! Each line of `known.txt` has fabric, role, phase, call, errno and symptom, or `*` for any;
//! `a|b` is one of both, where threads that take turns decide. What follows `#` is the cause.

use std::path::Path;

use super::plan::{Point, name_of};
use super::script::Finding;
use crate::Failure;

/// A line.
#[derive(Debug)]
pub(super) struct Known {
    fields: Vec<String>,
    /// Failures that it stands for.
    pub(super) found: usize,
}

/// The fields of a failure, as in a line.
pub(super) fn fields(point: &Point, finding: &Finding) -> [String; 6] {
    let symptom = serde_json::to_value(finding.symptom).unwrap_or_default();
    [
        name_of(point.over),
        format!("{:?}", point.role),
        name_of(point.target.phase),
        point.target.call.name.to_owned(),
        point.target.errno.name.to_owned(),
        format!(
            "{}:{:?}",
            symptom.as_str().unwrap_or_default(),
            finding.role
        ),
    ]
}

/// The lines of `known.txt`, or of another file.
pub(super) fn all(file: Option<&Path>) -> Result<Vec<Known>, Failure> {
    match file {
        Some(file) => parse(&std::fs::read_to_string(file)?),
        None => parse(include_str!("known.txt")),
    }
}

fn parse(text: &str) -> Result<Vec<Known>, Failure> {
    let mut known = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let fields: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match fields.len() {
            0 => {}
            6 => known.push(Known { fields, found: 0 }),
            _ => return Err(Failure::Run(format!("known.txt: no six fields: {line}"))),
        }
    }
    Ok(known)
}

impl Known {
    /// Whether it stands for this failure.
    pub(super) fn is(&self, fields: &[String; 6]) -> bool {
        let mut pairs = self.fields.iter().zip(fields);
        pairs.all(|(known, found)| known == "*" || known.split('|').any(|known| known == found))
    }

    /// Whether it stands for failures of this fabric alone, or of any.
    pub(super) fn is_over(&self, fabric: &str) -> bool {
        self.fields[0] == "*" || self.fields[0] == fabric
    }

    pub(super) fn line(&self) -> String {
        self.fields.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stands_for_the_failures_that_it_describes() {
        let known = parse("# all\nshm A join openat * stops:A|lost:A # cause\n\n").expect("known");
        assert_eq!(known.len(), 1);
        let check = |text: &str, expected: bool| {
            let fields: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let fields = fields.try_into().expect("six");
            assert_eq!(known[0].is(&fields), expected, "{text}");
        };
        check("shm A join openat EIO stops:A", true);
        check("shm A join openat EMFILE lost:A", true);
        check("shm A join openat EIO stops:B", false);
        check("tcp A join openat EIO stops:A", false);
        assert!(parse("shm A").is_err());
        assert!(all(None).is_ok());
    }
}
