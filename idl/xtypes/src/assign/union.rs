//! Unions: XTypes 1.3 §7.2.4.4.8.

use std::collections::HashMap;

use super::structure::step_to;
use super::{Comparison, Difference, Outcome, Side, View};
use crate::graph::{Branch, Extensibility, Type, TypeGraph, Union};
use crate::object::NameHash;

/// One side, with its branches by label, id and name.
struct Of<'g> {
    graph: &'g TypeGraph,
    union: &'g Union,
    labels: HashMap<i32, &'g Branch>,
    ids: HashMap<u32, &'g Branch>,
    names: HashMap<NameHash, &'g Branch>,
    default: Option<&'g Branch>,
}

impl<'g> Of<'g> {
    fn new(graph: &'g TypeGraph, union: &'g Union) -> Self {
        let branches = || union.branches.iter();
        let labels = branches().flat_map(|it| it.labels.iter().map(move |label| (*label, it)));
        let names = branches().map(|it| (it.member.name.hash(), it));
        Self {
            graph,
            union,
            labels: labels.collect(),
            ids: branches().map(|it| (it.member.id, it)).collect(),
            names: names.collect(),
            default: branches().find(|branch| branch.default),
        }
    }

    /// The branch that a label selects, possibly the default.
    fn selected(&self, label: i32) -> Option<&'g Branch> {
        self.labels.get(&label).copied().or(self.default)
    }

    /// All labels, in the order of their declaration.
    fn labels(&self) -> impl Iterator<Item = i32> + use<'g> {
        let branches = self.union.branches.iter();
        branches.flat_map(|branch| branch.labels.iter().copied())
    }

    fn side(&self, ty: &'g Type) -> Side<'g> {
        Side {
            graph: self.graph,
            ty: self.graph.resolved(ty),
        }
    }
}

impl Comparison {
    pub(super) fn union(
        &mut self,
        (reader_graph, reader): (&TypeGraph, &Union),
        (writer_graph, writer): (&TypeGraph, &Union),
        view: View,
    ) -> Outcome {
        if reader.extensibility != writer.extensibility {
            return Err(Difference::Extensibility {
                reader: reader.extensibility,
                writer: writer.extensibility,
            });
        }
        let one = Of::new(reader_graph, reader);
        let other = Of::new(writer_graph, writer);
        for side in [&one, &other] {
            self.spend(side.union.branches.len() + side.labels.len())?;
        }
        self.discriminators(&one, &other, view)?;
        if view == View::KeyHolder && writer.discriminator.key {
            return Ok(());
        }
        label_sets(&one, &other)?;
        self.branch_names(&one, &other)?;
        for label in one.labels().chain(other.labels()) {
            let found = (one.selected(label), other.selected(label));
            self.branches(&one, &other, found, view)?;
        }
        self.branches(&one, &other, (one.default, other.default), view)
    }

    fn discriminators(&mut self, reader: &Of<'_>, writer: &Of<'_>, view: View) -> Outcome {
        let (one, other) = (&reader.union.discriminator, &writer.union.discriminator);
        if view != View::KeyErased && one.key != other.key {
            return Err(Difference::DiscriminatorKey);
        }
        let sides = (reader.side(&one.ty), writer.side(&other.ty));
        self.within(".discriminator".to_owned(), |this| {
            this.strongly(sides.0, sides.1)
        })
    }

    /// Checks that equal names have equal ids, and equal ids equal names.
    fn branch_names(&mut self, one: &Of<'_>, other: &Of<'_>) -> Outcome {
        if self.consistency.ignore_member_names {
            return Ok(());
        }
        for branch in &other.union.branches {
            let member = &branch.member;
            if let Some(found) = one.ids.get(&member.id)
                && found.member.name != member.name
            {
                return Err(Difference::Name {
                    id: member.id,
                    reader: found.member.name.to_string(),
                    writer: member.name.to_string(),
                });
            }
            if let Some(found) = one.names.get(&member.name.hash())
                && found.member.name == member.name
                && found.member.id != member.id
            {
                let difference = Difference::Id {
                    reader: found.member.id,
                    writer: member.id,
                };
                return self.within(step_to(&found.member, member), |_| Err(difference));
            }
        }
        Ok(())
    }

    /// Compares the branches of each label that both sides have.
    fn branches(
        &mut self,
        reader: &Of<'_>,
        writer: &Of<'_>,
        found: (Option<&Branch>, Option<&Branch>),
        view: View,
    ) -> Outcome {
        let (Some(one), Some(other)) = found else {
            return Ok(());
        };
        let sides = (reader.side(&one.member.ty), writer.side(&other.member.ty));
        self.within(step_to(&one.member, &other.member), |this| {
            this.assignable(sides.0, sides.1, view)
        })
    }
}

/// Checks that final unions have the same labels, others at least one in common.
fn label_sets(one: &Of<'_>, other: &Of<'_>) -> Outcome {
    let has = |side: &Of<'_>, label: i32| side.labels.contains_key(&label);
    if one.union.extensibility != Extensibility::Final {
        let common = other.labels().any(|label| has(one, label));
        let none = one.labels.is_empty() && other.labels.is_empty();
        return match common || none {
            true => Ok(()),
            false => Err(Difference::NothingInCommon("label")),
        };
    }
    let single = (other.labels().find(|label| !has(one, *label)))
        .or_else(|| one.labels().find(|label| !has(other, *label)));
    match single {
        Some(label) => Err(Difference::Label(label.to_string())),
        None if one.default.is_some() != other.default.is_some() => {
            Err(Difference::Label("default".to_owned()))
        }
        None => Ok(()),
    }
}
