//! Structures, unions and typedefs.

use std::collections::HashSet;

use spindle_dds_xtypes::TypeIndex;
use spindle_dds_xtypes::graph::{
    Alias, Annotations, Branch, Definition, Discriminator, Extensibility, Member, Name, Primitive,
    Struct, TryConstruct, Type, Union,
};
use spindle_dds_xtypes::object::NameHash;

use super::uses::TYPE_ATTRIBUTES;
use super::{AGGREGATES, Declarer, Place, State, uses};
use crate::diagnostic::quote;
use crate::xml::members::no_text;
use crate::xml::tree::Element;

/// What is known of the members of a type so far.
struct Members {
    hash_ids: bool,
    next_id: u32,
    ids: HashSet<u32>,
    names: HashSet<String>,
}

impl Members {
    fn new(hash_ids: bool, next_id: u32) -> Self {
        Self {
            hash_ids,
            next_id,
            ids: HashSet::new(),
            names: HashSet::new(),
        }
    }
}

impl<'a> Declarer<'a> {
    pub(super) fn typedef(&mut self, place: Place<'_>, element: &'a Element) -> Alias {
        let own = ["name", "min", "max", "unit", "units"];
        self.attributes(place.source, element, &[&own[..], TYPE_ATTRIBUTES].concat());
        self.parts(place, element, &["annotations"]);
        let Some(ty) = self.ty(place, element) else {
            return uses::octet();
        };
        Alias {
            // Other typedefs may not be defined yet.
            range: match ty {
                Type::Declared(_) => spindle_dds_xtypes::graph::Range::default(),
                _ => self.range(place, element, &ty),
            },
            ty,
            unit: unit(element),
            custom: Vec::new(),
        }
    }

    pub(super) fn structure(&mut self, place: Place<'_>, element: &'a Element) -> Struct {
        let known = ["name", "baseType", "baseClass"];
        self.attributes(place.source, element, &[&known[..], OF_AGGREGATE].concat());
        no_text(element, self.report(place.source));
        let given = self.extensibility(place.source, element);
        let autoid_hash = self.autoid(place, element);
        let mut members = Members::new(autoid_hash, 0);
        let base = self.base(place, element, &mut members);
        let inherited = base.map(|(_, extensibility)| extensibility);
        if inherited.is_some() && given.is_some() && given != inherited {
            let message = "the base has another extensibility";
            self.error(place.source, element.at, message);
        }
        let extensibility = inherited.or(given);
        let mut all = Vec::new();
        for child in self.parts(place, element, &["member", "const"]) {
            if child.name == "member" {
                all.extend(self.member(place, child, OF_MEMBER, &mut members));
            }
        }
        Struct {
            extensibility: extensibility.unwrap_or(Extensibility::Appendable),
            nested: self.flag(place.source, element, "nested"),
            autoid_hash,
            base: base.map(|(index, _)| index),
            members: all,
        }
    }

    /// The base of a structure, which is defined first, with its extensibility.
    fn base(
        &mut self,
        place: Place<'_>,
        element: &Element,
        members: &mut Members,
    ) -> Option<(TypeIndex, Extensibility)> {
        let attribute = match element.attribute("baseType") {
            Some(_) => "baseType",
            None => "baseClass",
        };
        let name = element.attribute(attribute)?;
        let at = self.required(place, element.at, attribute, name)?;
        let is_aggregate = AGGREGATES.contains(&self.declared[at].element.name.as_str());
        self.bases += 1;
        if is_aggregate && self.declared[at].state == State::Named && self.bases <= BASES_MAX {
            self.define(at);
        }
        self.bases -= 1;
        let index = self.declared[at].index;
        let base = match &self.graph.declaration(index).definition {
            Definition::Struct(base) if self.declared[at].state == State::Defined => base.clone(),
            _ => {
                let text = quote(name);
                let message = format!(
                    "{attribute} {text} is no structure, inherits from this one, or from others \
                     over more than {BASES_MAX} steps"
                );
                self.error(place.source, element.at, message);
                return None;
            }
        };
        let inherited = self.graph.members(&base);
        members.next_id = inherited.last().map_or(0, |last| last.id.saturating_add(1));
        for member in inherited {
            members.ids.insert(member.id);
            members
                .names
                .insert(member.name.to_string().to_ascii_lowercase());
        }
        Some((index, base.extensibility))
    }

    pub(super) fn union(&mut self, place: Place<'_>, element: &'a Element) -> Union {
        self.attributes(place.source, element, &[&["name"], OF_AGGREGATE].concat());
        no_text(element, self.report(place.source));
        let given = self.extensibility(place.source, element);
        let autoid_hash = self.autoid(place, element);
        let mut union = Union {
            extensibility: given.unwrap_or(Extensibility::Appendable),
            nested: self.flag(place.source, element, "nested"),
            autoid_hash,
            discriminator: Discriminator {
                ty: Type::Primitive(Primitive::Int32),
                key: false,
                try_construct: TryConstruct::Discard,
                default: None,
                annotations: Annotations::default(),
            },
            branches: Vec::new(),
        };
        let mut members = Members::new(autoid_hash, 1);
        if union.extensibility == Extensibility::Mutable {
            // That of the discriminator.
            members.ids.insert(0);
        }
        let known = ["discriminator", "case", "defaultCase", "const"];
        let parts = self.parts(place, element, &known);
        let mut discriminators = parts.iter().filter(|it| it.name == "discriminator");
        match (discriminators.next(), discriminators.next()) {
            (Some(discriminator), None) => {
                let of_union = &mut union.discriminator;
                if self.discriminator(place, discriminator, of_union).is_none() {
                    return union;
                }
            }
            _ => {
                let message = "a union has one 'discriminator'";
                self.error(place.source, element.at, message);
                return union;
            }
        }
        for part in parts {
            if part.name == "case" || part.name == "defaultCase" {
                self.branch(place, part, &mut union, &mut members);
            }
        }
        if union.branches.is_empty() {
            let message = "a union has at least one 'case' with a 'member'";
            self.error(place.source, element.at, message);
        }
        union
    }

    fn discriminator(
        &mut self,
        place: Place<'_>,
        element: &'a Element,
        discriminator: &mut Discriminator,
    ) -> Option<()> {
        let known = ["key", "tryConstruct", "default"];
        self.attributes(
            place.source,
            element,
            &[&known[..], TYPE_ATTRIBUTES].concat(),
        );
        self.parts(place, element, &["annotations"]);
        discriminator.key = self.flag(place.source, element, "key");
        discriminator.try_construct = self.try_construct(place, element);
        let ty = self.ty(place, element)?;
        let selects = match self.graph.resolved(&ty) {
            Type::Primitive(primitive) => !matches!(
                primitive,
                Primitive::Float32 | Primitive::Float64 | Primitive::Float128
            ),
            Type::Declared(index) => {
                let definition = &self.graph.declaration(*index).definition;
                matches!(definition, Definition::Enum(_))
            }
            _ => false,
        };
        if !selects {
            let message =
                "a union switches on an integer, a character, a boolean or an enumeration";
            self.error(place.source, element.at, message);
            return None;
        }
        discriminator.default = self.default(place, element, &ty);
        discriminator.ty = ty;
        Some(())
    }

    /// Adds a branch to a union.
    fn branch(
        &mut self,
        place: Place<'_>,
        element: &'a Element,
        union: &mut Union,
        members: &mut Members,
    ) {
        self.attributes(place.source, element, &[]);
        let mut labels = Vec::new();
        let mut default = element.name == "defaultCase";
        let mut member = None;
        for child in self.parts(place, element, &["caseDiscriminator", "member"]) {
            if child.name == "member" {
                if member.replace(child).is_some() {
                    self.error(place.source, child.at, "a 'case' has one 'member'");
                }
                continue;
            }
            self.attributes(place.source, child, &["value"]);
            match child.attribute("value") {
                Some("default") => default = true,
                Some(text) => {
                    let ty = union.discriminator.ty.clone();
                    labels.extend(self.label(place, child.at, &ty, text));
                }
                None => {
                    let message = "'caseDiscriminator' has no attribute 'value'";
                    self.error(place.source, child.at, message);
                }
            }
        }
        let given = union.branches.iter().flat_map(|branch| &branch.labels);
        let mut given: HashSet<i32> = given.copied().collect();
        if !labels.iter().all(|label| given.insert(*label)) {
            let message = "a label is given twice in this union";
            self.error(place.source, element.at, message);
            return;
        }
        if default && union.branches.iter().any(|branch| branch.default) {
            let message = "only one branch can be the default";
            self.error(place.source, element.at, message);
            return;
        }
        let Some(member) = member else {
            let message = format!("{} has no 'member'", quote(&element.name));
            return self.error(place.source, element.at, message);
        };
        if labels.is_empty() && !default {
            // Wrong labels have been reported.
            if !element
                .children
                .iter()
                .any(|it| it.name == "caseDiscriminator")
            {
                let message = "a 'case' needs a 'caseDiscriminator'";
                self.error(place.source, element.at, message);
            }
            return;
        }
        if let Some(member) = self.member(place, member, OF_BRANCH, members) {
            union.branches.push(Branch {
                labels,
                default,
                member,
            });
        }
    }

    /// A member of a structure or a union; `None` if it is in error, or not sent.
    fn member(
        &mut self,
        place: Place<'_>,
        element: &'a Element,
        known: &[&str],
        members: &mut Members,
    ) -> Option<Member> {
        self.attributes(place.source, element, &[known, TYPE_ATTRIBUTES].concat());
        self.parts(place, element, &["annotations"]);
        let name = self.name(element, place.source)?;
        if name.len() > super::NAME_BYTES_MAX || !members.names.insert(name.to_ascii_lowercase()) {
            let message = format!(
                "member {} is given twice, or its name is too long",
                quote(name)
            );
            self.error(place.source, element.at, message);
            return None;
        }
        let (id, hash_id) = self.id(place, element, name, members)?;
        let ty = self.ty(place, element)?;
        let key = self.flag(place.source, element, "key");
        let optional = self.flag(place.source, element, "optional");
        if key && optional {
            let message = "a member of the key cannot be optional";
            self.error(place.source, element.at, message);
        }
        let must_understand = self.flag(place.source, element, "mustUnderstand")
            | self.flag(place.source, element, "must_understand");
        if self.flag(place.source, element, "nonSerialized") {
            return None;
        }
        Some(Member {
            name: Name::from(name),
            id,
            key,
            optional: optional && known == OF_MEMBER,
            must_understand: must_understand && !key,
            external: self.flag(place.source, element, "external"),
            try_construct: self.try_construct(place, element),
            unit: unit(element),
            range: self.range(place, element, &ty),
            hash_id,
            custom: Vec::new(),
            default: self.default(place, element, &ty),
            ty,
        })
    }

    /// The id of a member, and the name that it is the hash of.
    fn id(
        &mut self,
        place: Place<'_>,
        element: &Element,
        name: &str,
        members: &mut Members,
    ) -> Option<(u32, Option<String>)> {
        let (id, hash_id) = match (element.attribute("id"), element.attribute("hashid")) {
            (Some(_), Some(_)) => {
                let message = "'hashid' contradicts 'id'";
                self.error(place.source, element.at, message);
                return None;
            }
            (Some(_), None) => {
                let limits = 0..=i128::from(MEMBER_ID_MAX);
                let id = self.integer(place, element, "id", limits)?;
                (u32::try_from(id).ok()?, None)
            }
            (None, Some("")) => (hashed_id(name), Some(String::new())),
            (None, Some(text)) => (hashed_id(text), Some(text.to_owned())),
            (None, None) if members.hash_ids => (hashed_id(name), None),
            (None, None) => (members.next_id, None),
        };
        members.next_id = id.saturating_add(1);
        if id > MEMBER_ID_MAX || !members.ids.insert(id) {
            let message = format!(
                "the id {id} of {} is another member's, or too large",
                quote(name)
            );
            self.error(place.source, element.at, message);
            return None;
        }
        Some((id, hash_id))
    }

    fn autoid(&mut self, place: Place<'_>, element: &Element) -> bool {
        match element.attribute("autoid") {
            None | Some("sequential" | "SEQUENTIAL") => false,
            Some("hash" | "HASH") => true,
            Some(text) => {
                let message = format!("autoid is {}; it must be sequential or hash", quote(text));
                self.error(place.source, element.at, message);
                false
            }
        }
    }

    fn try_construct(&mut self, place: Place<'_>, element: &Element) -> TryConstruct {
        let Some(text) = element.attribute("tryConstruct") else {
            return TryConstruct::Discard;
        };
        match text.to_ascii_lowercase().as_str() {
            "discard" => TryConstruct::Discard,
            "use_default" => TryConstruct::UseDefault,
            "trim" => TryConstruct::Trim,
            _ => {
                let text = quote(text);
                let message =
                    format!("tryConstruct is {text}; it must be discard, use_default or trim");
                self.error(place.source, element.at, message);
                TryConstruct::Discard
            }
        }
    }
}

/// The id that a name has by its hash: XTypes 1.3 §7.3.1.2.1.1.
fn hashed_id(name: &str) -> u32 {
    u32::from_le_bytes(NameHash::of(name).0) & MEMBER_ID_MAX
}

fn unit(element: &Element) -> Option<String> {
    let unit = element
        .attribute("unit")
        .or_else(|| element.attribute("units"));
    unit.map(str::to_owned)
}

const MEMBER_ID_MAX: u32 = 0x0fff_ffff;
/// Most steps of inheritance: half of what the type system takes.
pub(super) const BASES_MAX: usize = spindle_dds_xtypes::limits::DEPTH_MAX / 2;

const OF_AGGREGATE: &[&str] = &["extensibility", "nested", "autoid"];

const OF_MEMBER: &[&str] = &[
    "name",
    "id",
    "hashid",
    "key",
    "optional",
    "mustUnderstand",
    "must_understand",
    "external",
    "nonSerialized",
    "tryConstruct",
    "default",
    "min",
    "max",
    "unit",
    "units",
];

const OF_BRANCH: &[&str] = &[
    "name",
    "id",
    "hashid",
    // In files of the standard, without a meaning.
    "optional",
    "mustUnderstand",
    "must_understand",
    "external",
    "tryConstruct",
    "default",
    "min",
    "max",
    "unit",
    "units",
];
