//! Names that domains and participants give twice.

use std::collections::HashSet;
use std::sync::Arc;

use super::system::Named;
use crate::diagnostic::{At, Diagnostic, Report, quote};
use crate::xml::domain::{Domain, Topics};
use crate::xml::participant::Participant;

/// Reports names that are given twice.
pub(super) fn twice<N: Named + Placed>(all: &[N]) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    let mut remarks = Vec::new();
    for one in all {
        if !seen.insert(one.full_name()) {
            let mut report = Report::new(one.topics().file.clone());
            let message = format!("{} {} is given twice", N::KIND, quote(one.full_name()));
            report.error(one.at(), message);
            remarks.extend(report.into_diagnostics());
        }
    }
    for one in all {
        remarks.extend(one.twice_inside());
    }
    remarks
}

/// Something with a place, and names in it.
pub(super) trait Placed {
    fn at(&self) -> At;
    /// Reports names in it that are given twice.
    fn twice_inside(&self) -> Vec<Diagnostic>;
}

impl Placed for Domain {
    fn at(&self) -> At {
        self.at
    }

    fn twice_inside(&self) -> Vec<Diagnostic> {
        topics_twice(&self.topics)
    }
}

impl Placed for Participant {
    fn at(&self) -> At {
        self.at
    }

    fn twice_inside(&self) -> Vec<Diagnostic> {
        let mut remarks = topics_twice(&self.topics);
        let file = &self.topics.file;
        let sides = [
            ("publisher", "data_writer", &self.publishers),
            ("subscriber", "data_reader", &self.subscribers),
        ];
        for (kind, endpoint, factories) in sides {
            let names = factories.iter().map(|it| (it.name.as_str(), it.at));
            remarks.extend(names_twice(kind, names, file));
            for factory in factories {
                let names = factory.endpoints.iter();
                let names = names.map(|it| (it.name.as_str(), it.at));
                remarks.extend(names_twice(endpoint, names, file));
            }
        }
        remarks
    }
}

fn topics_twice(topics: &Topics) -> Vec<Diagnostic> {
    let types = topics.types.iter();
    let types = types.map(|it| (it.name.as_str(), it.type_ref.at));
    let mut remarks = names_twice("register_type", types, &topics.file);
    let names = topics.topics.iter().map(|it| (it.name.as_str(), it.at));
    remarks.extend(names_twice("topic", names, &topics.file));
    remarks
}

fn names_twice<'a>(
    kind: &str,
    names: impl Iterator<Item = (&'a str, At)>,
    file: &Arc<str>,
) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    let mut report = Report::new(file.clone());
    for (name, at) in names {
        if !seen.insert(name) {
            report.error(at, format!("{kind} {} is given twice", quote(name)));
        }
    }
    report.into_diagnostics()
}
