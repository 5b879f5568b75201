//! The annotations of IDL 4.2 §8.3 and XTypes 1.3 §7.3.1.2: their parameters, and the
//! places where they may occur.

/// The kind of declaration or use that an annotation is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnnotationTarget {
    Module,
    Struct,
    Exception,
    Member,
    Union,
    Discriminator,
    Branch,
    Enum,
    Literal,
    Bitmask,
    Flag,
    Bitset,
    BitField,
    Typedef,
    Const,
    Native,
    Interface,
    Attribute,
    Operation,
    Parameter,
    /// An element of a collection.
    Element,
    /// A use of a type, or after a declared name.
    Use,
    /// A declaration of an annotation.
    Annotation,
}

impl AnnotationTarget {
    /// Whether a type object (XTypes 1.3 Annex B) can contain annotations of it.
    pub(super) const fn is_in_type_objects(self) -> bool {
        matches!(
            self,
            Self::Struct
                | Self::Member
                | Self::Union
                | Self::Discriminator
                | Self::Branch
                | Self::Enum
                | Self::Literal
                | Self::Bitmask
                | Self::Flag
                | Self::Bitset
                | Self::BitField
                | Self::Typedef
        )
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Module => "a module",
            Self::Struct => "a struct",
            Self::Exception => "an exception",
            Self::Member => "a member",
            Self::Union => "a union",
            Self::Discriminator => "the discriminator of a union",
            Self::Branch => "a branch of a union",
            Self::Enum => "an enum",
            Self::Literal => "a literal of an enum",
            Self::Bitmask => "a bitmask",
            Self::Flag => "a flag of a bitmask",
            Self::Bitset => "a bitset",
            Self::BitField => "a bit field",
            Self::Typedef => "a typedef",
            Self::Const => "a constant",
            Self::Native => "a native type",
            Self::Interface => "an interface",
            Self::Attribute => "an attribute",
            Self::Operation => "an operation",
            Self::Parameter => "a parameter",
            Self::Element => "an element of a collection",
            Self::Use => "a part of a declaration",
            Self::Annotation => "the declaration of an annotation",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    /// Allowed at these places.
    At(&'static [AnnotationTarget]),
    /// Accepted anywhere, because it does not affect the type.
    Remark,
    /// Refused unless its value is `FALSE`.
    RefusedFlag,
}

pub(super) const TYPES: &[AnnotationTarget] = &[
    AnnotationTarget::Struct,
    AnnotationTarget::Exception,
    AnnotationTarget::Union,
    AnnotationTarget::Enum,
    AnnotationTarget::Bitmask,
    AnnotationTarget::Bitset,
    AnnotationTarget::Typedef,
    AnnotationTarget::Native,
    AnnotationTarget::Interface,
];
const EVOLVING: &[AnnotationTarget] = &[
    AnnotationTarget::Struct,
    AnnotationTarget::Exception,
    AnnotationTarget::Union,
    AnnotationTarget::Enum,
    AnnotationTarget::Bitmask,
];
const AGGREGATES: &[AnnotationTarget] = &[AnnotationTarget::Struct, AnnotationTarget::Union];
const MEMBERS: &[AnnotationTarget] = &[AnnotationTarget::Member, AnnotationTarget::Branch];
pub(super) const VALUES: &[AnnotationTarget] = &[
    AnnotationTarget::Member,
    AnnotationTarget::Branch,
    AnnotationTarget::Typedef,
];

/// The meaning of an argument without a name.
pub(super) const VALUE: &str = "value";
const NONE: &[&str] = &[];
const ONE: &[&str] = &[VALUE];

/// A standard annotation: its name, its parameters, and where it may occur.
pub(super) type Standard = (&'static str, &'static [&'static str], Support);

pub(super) const KNOWN: &[Standard] = &[
    ("ami", ONE, Support::RefusedFlag),
    ("appendable", NONE, Support::At(EVOLVING)),
    (
        "autoid",
        ONE,
        Support::At(&[
            AnnotationTarget::Module,
            AnnotationTarget::Struct,
            AnnotationTarget::Exception,
            AnnotationTarget::Union,
            AnnotationTarget::Interface,
        ]),
    ),
    (
        "bit_bound",
        ONE,
        Support::At(&[AnnotationTarget::Enum, AnnotationTarget::Bitmask]),
    ),
    (
        "data_representation",
        &["allowed_kinds", VALUE],
        Support::At(&[
            AnnotationTarget::Module,
            AnnotationTarget::Struct,
            AnnotationTarget::Union,
        ]),
    ),
    (
        "default",
        ONE,
        Support::At(&[
            AnnotationTarget::Member,
            AnnotationTarget::Branch,
            AnnotationTarget::Discriminator,
            AnnotationTarget::Typedef,
        ]),
    ),
    (
        "default_literal",
        NONE,
        Support::At(&[AnnotationTarget::Literal]),
    ),
    (
        "default_nested",
        ONE,
        Support::At(&[AnnotationTarget::Module]),
    ),
    ("extensibility", ONE, Support::At(EVOLVING)),
    (
        "external",
        ONE,
        Support::At(&[
            AnnotationTarget::Member,
            AnnotationTarget::Branch,
            AnnotationTarget::Element,
        ]),
    ),
    ("final", NONE, Support::At(EVOLVING)),
    ("hashid", ONE, Support::At(MEMBERS)),
    ("id", ONE, Support::At(MEMBERS)),
    (
        "ignore_literal_names",
        ONE,
        Support::At(&[AnnotationTarget::Enum]),
    ),
    (
        "key",
        ONE,
        Support::At(&[AnnotationTarget::Member, AnnotationTarget::Discriminator]),
    ),
    ("max", ONE, Support::At(VALUES)),
    ("min", ONE, Support::At(VALUES)),
    // The flags of a branch have no bit for it: XTypes 1.3 Annex B, `UnionMemberFlag`.
    (
        "must_understand",
        ONE,
        Support::At(&[AnnotationTarget::Member]),
    ),
    ("mutable", NONE, Support::At(EVOLVING)),
    ("nested", ONE, Support::At(TYPES)),
    (
        "non_serialized",
        ONE,
        Support::At(&[AnnotationTarget::Member]),
    ),
    ("oneway", ONE, Support::At(&[AnnotationTarget::Operation])),
    ("optional", ONE, Support::At(&[AnnotationTarget::Member])),
    ("position", ONE, Support::At(&[AnnotationTarget::Flag])),
    ("range", &["min", "max"], Support::At(VALUES)),
    (
        "service",
        &["platform", VALUE],
        Support::At(&[AnnotationTarget::Interface]),
    ),
    ("top_level", ONE, Support::At(TYPES)),
    ("topic", &["name", "platform"], Support::At(AGGREGATES)),
    (
        "try_construct",
        ONE,
        Support::At(&[
            AnnotationTarget::Member,
            AnnotationTarget::Branch,
            AnnotationTarget::Discriminator,
            AnnotationTarget::Element,
        ]),
    ),
    ("unit", ONE, Support::Remark),
    ("value", ONE, Support::At(&[AnnotationTarget::Literal])),
    (
        "verbatim",
        &["language", "placement", "text"],
        Support::Remark,
    ),
];

/// Whether a construct cannot have the property of an annotation, so that ignoring it would not do
/// what it asks for: members of unions and elements are neither optional nor keys (XTypes 1.3
/// §7.2.2.4.4), and bitsets and aliases have no extensibility of their own (table 12).
pub(super) fn contradicts(name: &str, place: AnnotationTarget) -> bool {
    use AnnotationTarget::{Bitset, Branch, Discriminator, Element, Typedef};
    match name {
        "key" => matches!(place, Branch | Element),
        "must_understand" | "non_serialized" | "optional" => {
            matches!(place, Branch | Discriminator | Element)
        }
        "appendable" | "extensibility" | "final" | "mutable" => matches!(place, Bitset | Typedef),
        _ => false,
    }
}

/// Former and foreign names of annotations, without underscores: XTypes 1.0 and
/// Connext DDS.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("alloweddatarepresentation", "data_representation"),
    ("shared", "external"),
];

/// The standard annotation that another spelling means, such as `@MustUnderstand`.
pub(super) fn other_spelling(written: &str) -> Option<&'static Standard> {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let meant = plain(written);
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == meant);
    let meant = other.map_or(meant, |(_, name)| plain(name));
    KNOWN.iter().find(|(name, ..)| plain(name) == meant)
}

/// Whether this is the name of a standard annotation.
pub(super) fn is_standard(name: &str) -> bool {
    KNOWN.iter().any(|(known, ..)| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(KNOWN.is_sorted_by(|left, right| left.0 < right.0));
    }

    /// `taken.idl` and `refused.idl` of each, and no folder of another name.
    #[test]
    fn each_has_a_folder_of_fixtures() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/features/annotations");
        let entries = std::fs::read_dir(root).expect("the fixtures are there");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        let known: Vec<_> = KNOWN.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, known);
        for name in known {
            for file in ["taken.idl", "refused.idl"] {
                let path = std::path::Path::new(root).join(name).join(file);
                assert!(path.is_file(), "{}", path.display());
            }
        }
    }
}
