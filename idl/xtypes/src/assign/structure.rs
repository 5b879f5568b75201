//! Structures: XTypes 1.3 §7.2.4.4.8.

use std::collections::HashMap;

use super::{Comparison, Difference, Outcome, Side, View};
use crate::graph::{Definition, Extensibility, Member, Name, Struct, Type, TypeGraph};
use crate::object::NameHash;

/// The compared members of one side, those inherited first.
struct Members<'g> {
    graph: &'g TypeGraph,
    list: Vec<&'g Member>,
    ids: HashMap<u32, &'g Member>,
    names: HashMap<NameHash, &'g Member>,
    view: View,
    /// Whether any member is marked as a key.
    keyed: bool,
}

impl<'g> Members<'g> {
    fn new(graph: &'g TypeGraph, structure: &'g Struct, view: View) -> Self {
        let mut list = graph.members(structure);
        let keyed = list.iter().any(|member| member.key);
        if view == View::KeyHolder && keyed {
            list.retain(|member| member.key);
        }
        let ids = list.iter().map(|member| (member.id, *member));
        let names = list.iter().map(|member| (member.name.hash(), *member));
        Self {
            graph,
            ids: ids.collect(),
            names: names.collect(),
            list,
            view,
            keyed,
        }
    }

    fn is_key(&self, member: &Member) -> bool {
        match self.view {
            View::Whole => member.key,
            View::KeyErased | View::KeyValues => false,
            View::KeyHolder => member.key || !self.keyed,
        }
    }

    fn find(&self, id: u32) -> Option<&'g Member> {
        self.ids.get(&id).copied()
    }

    fn side(&self, ty: &'g Type) -> Side<'g> {
        Side {
            graph: self.graph,
            ty: self.graph.resolved(ty),
        }
    }
}

/// A step of the path.
fn step(member: &Member) -> String {
    format!(".{}", member.name)
}

/// The path step of a common member, by its name if either side has it: a type may be known
/// in its minimal form only.
pub(super) fn step_to(one: &Member, other: &Member) -> String {
    match one.name {
        Name::Text(_) => step(one),
        Name::Hash(_) => step(other),
    }
}

impl Comparison {
    pub(super) fn structure(
        &mut self,
        (reader_graph, reader): (&TypeGraph, &Struct),
        (writer_graph, writer): (&TypeGraph, &Struct),
        view: View,
    ) -> Outcome {
        if reader.extensibility != writer.extensibility {
            return Err(Difference::Extensibility {
                reader: reader.extensibility,
                writer: writer.extensibility,
            });
        }
        let one = Members::new(reader_graph, reader, view);
        let other = Members::new(writer_graph, writer, view);
        self.spend(one.list.len() + other.list.len())?;
        self.names(&one, &other)?;
        if reader.extensibility != Extensibility::Mutable {
            self.in_order(&one, &other)?;
        }
        self.required(&one, &other, reader.extensibility)?;
        let mut matched = 0;
        for member in &other.list {
            let Some(found) = one.find(member.id) else {
                continue;
            };
            matched += 1;
            let key = one.is_key(found) || other.is_key(member);
            let sides = (one.side(&found.ty), other.side(&member.ty));
            self.within(step_to(found, member), |this| this.members(sides, key))?;
        }
        if matched == 0 && !(one.list.is_empty() && other.list.is_empty()) {
            return Err(Difference::NothingInCommon("member"));
        }
        Ok(())
    }

    /// Checks that equal names have equal ids, and equal ids equal names.
    fn names(&mut self, one: &Members<'_>, other: &Members<'_>) -> Outcome {
        if self.consistency.ignore_member_names {
            return Ok(());
        }
        for member in &other.list {
            let same_id = one.find(member.id);
            if let Some(found) = same_id
                && found.name != member.name
            {
                return Err(Difference::Name {
                    id: member.id,
                    reader: found.name.to_string(),
                    writer: member.name.to_string(),
                });
            }
            if let Some(found) = one.names.get(&member.name.hash())
                && found.name == member.name
                && found.id != member.id
            {
                let difference = Difference::Id {
                    reader: found.id,
                    writer: member.id,
                };
                return self.within(step_to(found, member), |_| Err(difference));
            }
        }
        Ok(())
    }

    /// Checks that members at the same position have the same id, up to the shorter side.
    fn in_order(&mut self, one: &Members<'_>, other: &Members<'_>) -> Outcome {
        for (found, member) in one.list.iter().zip(&other.list) {
            let sides = (one.side(&found.ty), other.side(&member.ty));
            self.within(step_to(found, member), |this| {
                if found.id != member.id {
                    return Err(Difference::Id {
                        reader: found.id,
                        writer: member.id,
                    });
                }
                if found.optional != member.optional {
                    return Err(Difference::Optional);
                }
                this.strongly(sides.0, sides.1)
            })?;
        }
        Ok(())
    }

    /// Checks the members that must be in both types.
    fn required(
        &mut self,
        one: &Members<'_>,
        other: &Members<'_>,
        extensibility: Extensibility,
    ) -> Outcome {
        let sides = [(one, other, "writer"), (other, one, "reader")];
        for (members, others, lacks) in sides {
            for member in &members.list {
                if others.find(member.id).is_some() {
                    continue;
                }
                let widens = self.consistency.prevent_type_widening && lacks == "writer";
                let why = if extensibility == Extensibility::Final {
                    "a member of a final type"
                } else if members.is_key(member) {
                    "a key"
                } else if member.must_understand && !member.optional {
                    "to be understood"
                } else if widens {
                    "more than the writer's type has, which is prevented"
                } else {
                    continue;
                };
                let missing = Difference::Missing { lacks, why };
                return self.within(step(member), |_| Err(missing));
            }
        }
        Ok(())
    }

    /// Compares members of the same id.
    fn members(&mut self, (reader, writer): (Side<'_>, Side<'_>), key: bool) -> Outcome {
        self.assignable(reader, writer, member_view(writer, key))?;
        if !key {
            return Ok(());
        }
        self.key_values(reader, writer)?;
        self.assignable(reader, writer, View::KeyErased)
    }
}

/// The view for a member: the keys of a structure or union count only if the member is a
/// key itself.
fn member_view(side: Side<'_>, key: bool) -> View {
    match side.definition() {
        Some(Definition::Struct(_) | Definition::Union(_)) if key => View::KeyHolder,
        Some(Definition::Struct(_) | Definition::Union(_)) => View::KeyErased,
        _ => View::Whole,
    }
}
