//! Unions: XTypes 1.3 §7.2.4.4.8.

use super::structure::step_to;
use super::{Comparison, Difference, Outcome, Side, View};
use crate::graph::{Branch, Extensibility, TypeGraph, Union};

/// One side.
type Of<'g> = (&'g TypeGraph, &'g Union);

/// The branch that a label selects, the default perhaps.
fn selected(union: &Union, label: i32) -> Option<&Branch> {
    let labelled = union
        .branches
        .iter()
        .find(|branch| branch.labels.contains(&label));
    labelled.or_else(|| default(union))
}

fn default(union: &Union) -> Option<&Branch> {
    union.branches.iter().find(|branch| branch.default)
}

fn labels(union: &Union) -> impl Iterator<Item = i32> {
    union
        .branches
        .iter()
        .flat_map(|branch| branch.labels.iter().copied())
}

impl Comparison {
    pub(super) fn union(&mut self, reader: Of<'_>, writer: Of<'_>, view: View) -> Outcome {
        let (one, other) = (reader.1, writer.1);
        if one.extensibility != other.extensibility {
            return Err(Difference::Extensibility {
                reader: one.extensibility,
                writer: other.extensibility,
            });
        }
        self.discriminators(reader, writer, view)?;
        if view == View::KeyHolder && other.discriminator.key {
            return Ok(());
        }
        label_sets(one, other)?;
        self.branch_names(one, other)?;
        for label in labels(one).chain(labels(other)) {
            let found = (selected(one, label), selected(other, label));
            self.branches(reader, writer, found, view)?;
        }
        self.branches(reader, writer, (default(one), default(other)), view)
    }

    fn discriminators(&mut self, reader: Of<'_>, writer: Of<'_>, view: View) -> Outcome {
        let (one, other) = (&reader.1.discriminator, &writer.1.discriminator);
        if view != View::KeyErased && one.key != other.key {
            return Err(Difference::DiscriminatorKey);
        }
        let sides = (side(reader, &one.ty), side(writer, &other.ty));
        self.within(".discriminator".to_owned(), |this| {
            this.strongly(sides.0, sides.1)
        })
    }

    /// A name has one id, and an id one name.
    fn branch_names(&mut self, one: &Union, other: &Union) -> Outcome {
        if self.consistency.ignore_member_names {
            return Ok(());
        }
        for branch in &other.branches {
            for found in &one.branches {
                let same_name = found.member.name == branch.member.name;
                let same_id = found.member.id == branch.member.id;
                if same_id && !same_name {
                    return Err(Difference::Name {
                        id: branch.member.id,
                        reader: found.member.name.to_string(),
                        writer: branch.member.name.to_string(),
                    });
                }
                if same_name && !same_id {
                    let difference = Difference::Id {
                        reader: found.member.id,
                        writer: branch.member.id,
                    };
                    return self
                        .within(step_to(&found.member, &branch.member), |_| Err(difference));
                }
            }
        }
        Ok(())
    }

    /// Branches that one label selects, where there are such in both.
    fn branches(
        &mut self,
        reader: Of<'_>,
        writer: Of<'_>,
        found: (Option<&Branch>, Option<&Branch>),
        view: View,
    ) -> Outcome {
        let (Some(one), Some(other)) = found else {
            return Ok(());
        };
        let sides = (side(reader, &one.member.ty), side(writer, &other.member.ty));
        self.within(step_to(&one.member, &other.member), |this| {
            this.assignable(sides.0, sides.1, view)
        })
    }
}

fn side<'g>((graph, _): Of<'g>, ty: &'g crate::graph::Type) -> Side<'g> {
    Side {
        graph,
        ty: graph.resolved(ty),
    }
}

/// Final unions have the same labels, others at least one in common.
fn label_sets(one: &Union, other: &Union) -> Outcome {
    let has = |union: &Union, label: i32| labels(union).any(|found| found == label);
    if one.extensibility != Extensibility::Final {
        let common = labels(other).any(|label| has(one, label));
        let none = labels(one).next().is_none() && labels(other).next().is_none();
        return match common || none {
            true => Ok(()),
            false => Err(Difference::NothingInCommon("label")),
        };
    }
    let single = labels(other)
        .find(|label| !has(one, *label))
        .or_else(|| labels(one).find(|label| !has(other, *label)));
    match single {
        Some(label) => Err(Difference::Label(label.to_string())),
        None if default(one).is_some() != default(other).is_some() => {
            Err(Difference::Label("default".to_owned()))
        }
        None => Ok(()),
    }
}
