//! The targets of the names in `base_name`, lists of bases and `snippet_ref`.

use crate::diagnostic::{Diagnostic, Report};
use crate::provider::names::Names;
use crate::provider::walk::Walk;
use crate::xml::library::Group;

/// The target of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// A group: its QoS for the same kind of entity.
    Group(usize),
    /// The entity of a group.
    Entity(usize, usize),
}

/// The links of all groups, by index.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) groups: Vec<GroupLinks>,
}

/// The links of one group.
#[derive(Debug, Default)]
pub(super) struct GroupLinks {
    pub(super) base: Option<usize>,
    pub(super) snippets: Vec<Option<Target>>,
    pub(super) entities: Vec<EntityLinks>,
}

/// The links of one entity.
#[derive(Debug, Default)]
pub(super) struct EntityLinks {
    pub(super) base: Option<Target>,
    pub(super) snippets: Vec<Option<Target>>,
}

impl Links {
    /// Links all names in `groups`; unknown names and cycles are reported.
    pub(super) fn of(groups: &[Group]) -> (Self, Vec<Diagnostic>) {
        let mut remarks = Vec::new();
        let names = Names::of(groups, &mut remarks);
        let mut links = Self::default();
        for group in groups {
            if remarks.len() > REMARKS_MAX {
                return (links, remarks);
            }
            let mut report = Report::new(group.file.clone());
            links.groups.push(names.link(group, &mut report));
            remarks.extend(report.into_diagnostics());
        }
        remarks.extend(Walk::new(groups, &links).run());
        (links, remarks)
    }
}

const REMARKS_MAX: usize = 200;
