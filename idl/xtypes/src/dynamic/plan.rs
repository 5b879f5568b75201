//! Precomputed facts about types for encoding and decoding.

use std::collections::HashMap;
use std::ops::Deref;

use spindle_dds_idl_runtime::shape::LengthCode;

use crate::describe::strongly_connected;
use crate::graph::{
    Bitmask, Bitset, Definition, Enum, Extensibility, Member, Primitive, Range, Type, TypeGraph,
    TypeIndex, Union,
};

/// A graph with the facts that encoding and decoding need repeatedly.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) graph: TypeGraph,
    /// All members of each structure; empty for other types.
    members: Vec<Members>,
    /// Fewest bytes of a value of each declared type.
    size_min: Vec<usize>,
    /// A number for each declared type; types have the same number if the default of each
    /// contains that of the other.
    cycles: Vec<usize>,
}

/// All members of a structure, those inherited first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Members {
    list: Vec<Member>,
    /// The index of the member with each id.
    ids: HashMap<u32, usize>,
    /// Whether any of them is annotated as a key.
    keyed: bool,
}

impl Members {
    fn new(list: Vec<Member>) -> Self {
        let ids = list.iter().enumerate().map(|(at, member)| (member.id, at));
        Self {
            ids: ids.collect(),
            keyed: list.iter().any(|member| member.key),
            list,
        }
    }

    /// The index of the member with this id.
    pub(crate) fn position(&self, id: u32) -> Option<usize> {
        self.ids.get(&id).copied()
    }

    /// Whether a member is part of the key: it is annotated, or no member is.
    pub(crate) fn is_key(&self, member: &Member) -> bool {
        member.key || !self.keyed
    }
}

impl Deref for Members {
    type Target = [Member];

    fn deref(&self) -> &[Member] {
        &self.list
    }
}

/// A declared type behind typedefs.
pub(crate) enum Declared<'p> {
    Enum(&'p Enum),
    Bitmask(&'p Bitmask),
    Bitset(&'p Bitset),
    Struct(Extensibility, &'p Members),
    Union(TypeIndex, &'p Union),
}

/// No range.
pub(crate) const ANY: &Range = &Range {
    min: None,
    max: None,
};

impl Plan {
    pub(crate) fn new(graph: TypeGraph) -> Self {
        let members = graph
            .indices()
            .map(|index| match &graph.declaration(index).definition {
                Definition::Struct(structure) => {
                    Members::new(graph.members(structure).into_iter().cloned().collect())
                }
                _ => Members::default(),
            });
        let members = members.collect();
        let mut plan = Self {
            size_min: vec![usize::MAX; graph.len()],
            cycles: Vec::new(),
            members,
            graph,
        };
        plan.find_cycles();
        for index in plan.graph.indices() {
            plan.find_size(index, crate::limits::DEPTH_MAX);
        }
        plan
    }

    /// A type without the typedefs around it, and the range of the outermost.
    pub(crate) fn resolve<'p>(&'p self, ty: &'p Type) -> &'p Type {
        self.graph.resolved(ty)
    }

    pub(crate) fn declared(&self, index: TypeIndex) -> Option<Declared<'_>> {
        Some(match &self.graph.declaration(index).definition {
            Definition::Alias(_) | Definition::Annotation(_) => return None,
            Definition::Enum(enumeration) => Declared::Enum(enumeration),
            Definition::Bitmask(bitmask) => Declared::Bitmask(bitmask),
            Definition::Bitset(bitset) => Declared::Bitset(bitset),
            Definition::Struct(structure) => {
                Declared::Struct(structure.extensibility, self.members(index)?)
            }
            Definition::Union(union) => Declared::Union(index, union),
        })
    }

    pub(crate) fn members(&self, index: TypeIndex) -> Option<&Members> {
        self.members.get(index.0 as usize)
    }

    /// The range of the numbers of a type: as given, or else that of a typedef.
    pub(crate) fn range<'p>(&'p self, given: &'p Range, ty: &'p Type) -> &'p Range {
        if *given != *ANY {
            return given;
        }
        let mut ty = ty;
        for _ in 0..=crate::limits::DEPTH_MAX {
            let Type::Declared(index) = ty else { break };
            let Definition::Alias(alias) = &self.graph.declaration(*index).definition else {
                break;
            };
            if alias.range != *ANY {
                return &alias.range;
            }
            ty = &alias.ty;
        }
        ANY
    }

    /// The primitive of a type.
    pub(crate) fn primitive(&self, ty: &Type) -> Option<Primitive> {
        match self.resolve(ty) {
            Type::Primitive(primitive) => Some(*primitive),
            _ => None,
        }
    }

    /// The length code of a value in a member header of XCDR2.
    pub(crate) fn length_code(&self, ty: &Type, range: &Range) -> LengthCode {
        let range = self.range(range, ty);
        match self.resolve(ty) {
            Type::Primitive(primitive) => LengthCode::of_size(primitive.size()),
            Type::String8(_) | Type::String16(_) => LengthCode::Shared(5),
            Type::Sequence { element, .. } => match self.primitive(&element.ty) {
                Some(primitive) if *self.range(range, &element.ty) == *ANY => {
                    LengthCode::of_elements(primitive.size())
                }
                Some(_) => LengthCode::Next,
                None => LengthCode::Shared(5),
            },
            Type::Array { element, .. } => match self.primitive(&element.ty) {
                Some(_) => LengthCode::Next,
                None => LengthCode::Shared(5),
            },
            Type::Map { key, value, .. } => match self.plain_entries(&key.ty, &value.ty) {
                true => LengthCode::Next,
                false => LengthCode::Shared(5),
            },
            Type::Declared(index) => match self.declared(*index) {
                Some(Declared::Enum(one)) => LengthCode::of_size(enum_size(one)),
                Some(Declared::Bitmask(one)) => LengthCode::of_size(word_size(one.bit_bound)),
                Some(Declared::Bitset(one)) => LengthCode::of_size(word_size(bits(one))),
                Some(Declared::Struct(extensibility, _)) => LengthCode::of_aggregate(extensibility),
                Some(Declared::Union(_, one)) => LengthCode::of_aggregate(one.extensibility),
                None => LengthCode::Next,
            },
        }
    }

    /// Whether a map has no delimiter.
    pub(crate) fn plain_entries(&self, key: &Type, value: &Type) -> bool {
        self.primitive(key).is_some() && self.primitive(value).is_some()
    }

    /// Fewest bytes of a value in any representation.
    pub(crate) fn size_min(&self, ty: &Type) -> usize {
        match self.resolve(ty) {
            Type::Primitive(primitive) => primitive.size(),
            Type::String8(_) => 5,
            Type::String16(_) | Type::Sequence { .. } | Type::Map { .. } => 4,
            Type::Array {
                element,
                dimensions,
            } => {
                let count = dimensions.iter().map(|one| *one as usize);
                let size = count.fold(self.size_min(&element.ty), usize::saturating_mul);
                match self.primitive(&element.ty) {
                    Some(_) => size,
                    // Only a delimiter, if the elements are of a newer version.
                    None => size.min(4),
                }
            }
            Type::Declared(index) => {
                let size = self.size_min.get(index.0 as usize).copied();
                size.filter(|size| *size != usize::MAX).unwrap_or(0)
            }
        }
    }

    /// Whether the default of a branch contains that of its union, `index`.
    pub(crate) fn default_is_recursive(&self, index: TypeIndex, branch: &Type) -> bool {
        let cycle = |index: TypeIndex| self.cycles.get(index.0 as usize);
        match self.within_default(branch) {
            Some(inner) => inner == index || cycle(inner) == cycle(index),
            None => false,
        }
    }

    /// The declared type whose default is part of the default of a type.
    fn within_default(&self, ty: &Type) -> Option<TypeIndex> {
        let mut ty = self.resolve(ty);
        while let Type::Array { element, .. } = ty {
            ty = self.resolve(&element.ty);
        }
        match ty {
            Type::Declared(index) => Some(*index),
            _ => None,
        }
    }

    fn find_cycles(&mut self) {
        let inner = |index: TypeIndex| -> Vec<usize> {
            let types: Vec<&Type> = match self.declared(index) {
                Some(Declared::Struct(_, members)) => {
                    let there = members.iter().filter(|member| !member.optional);
                    there.map(|member| &member.ty).collect()
                }
                Some(Declared::Union(_, union)) => union
                    .branches
                    .iter()
                    .map(|branch| &branch.member.ty)
                    .collect(),
                _ => Vec::new(),
            };
            let named = types.into_iter().filter_map(|ty| self.within_default(ty));
            let named = named.map(|index| index.0 as usize);
            named.filter(|index| *index < self.graph.len()).collect()
        };
        let edges: Vec<Vec<usize>> = self.graph.indices().map(inner).collect();
        let mut cycles = vec![0; edges.len()];
        for (number, nodes) in strongly_connected(&edges).into_iter().enumerate() {
            for node in nodes {
                cycles[node] = number;
            }
        }
        self.cycles = cycles;
    }

    /// Computes the size of a declared type after those of its dependencies. Types that nest
    /// too deeply or contain themselves count as 0.
    fn find_size(&mut self, index: TypeIndex, depth: usize) {
        let at = index.0 as usize;
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if self.size_min.get(at).is_none_or(|size| *size != usize::MAX) {
            return;
        }
        self.size_min[at] = 0;
        let mut named = Vec::new();
        self.graph.names(index, &mut |index| named.push(index));
        for index in named {
            self.find_size(index, depth);
        }
        self.size_min[at] = match &self.graph.declaration(index).definition {
            Definition::Alias(_) | Definition::Annotation(_) => 0,
            Definition::Enum(one) => enum_size(one),
            Definition::Bitmask(one) => word_size(one.bit_bound),
            Definition::Bitset(one) => word_size(bits(one)),
            Definition::Struct(structure) => {
                let members = self
                    .members(index)
                    .into_iter()
                    .flat_map(|members| members.iter())
                    .map(|member| match member.optional {
                        true => 1,
                        false => self.size_min(&member.ty),
                    });
                let sum = members.fold(0, usize::saturating_add);
                limited(structure.extensibility, sum)
            }
            Definition::Union(union) => {
                limited(union.extensibility, self.size_min(&union.discriminator.ty))
            }
        };
    }
}

/// Either only a delimiter, or only the members.
fn limited(extensibility: Extensibility, members: usize) -> usize {
    match extensibility {
        Extensibility::Final => members,
        Extensibility::Appendable => members.min(4),
        Extensibility::Mutable => 4,
    }
}

/// Bytes of an enumeration.
pub(crate) fn enum_size(enumeration: &Enum) -> usize {
    match enumeration.bit_bound {
        0..=8 => 1,
        9..=16 => 2,
        _ => 4,
    }
}

/// Bytes of a bitmask or a bitset with this many bits.
pub(crate) fn word_size(bits: u16) -> usize {
    match bits {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}

/// The valid bits of a bitmask: those of its flags if it is final, else all below its
/// bound.
pub(crate) fn valid_bits(mask: &Bitmask) -> u64 {
    match mask.extensibility {
        Some(Extensibility::Final) => {
            let flags = mask.flags.iter().map(|flag| 1 << (flag.position & 63));
            flags.fold(0, |all, flag: u64| all | flag)
        }
        _ => low_bits(mask.bit_bound),
    }
}

/// Bits of a bitset, up to the end of its last field.
pub(crate) fn bits(bitset: &Bitset) -> u16 {
    let ends = bitset
        .fields
        .iter()
        .map(|field| field.position + u16::from(field.bits));
    ends.max().unwrap_or(1)
}

/// The bits of the fields of a bitset.
pub(crate) fn field_bits(bitset: &Bitset) -> u64 {
    let masks = bitset.fields.iter().map(|field| {
        low_bits(u16::from(field.bits))
            .checked_shl(u32::from(field.position))
            .unwrap_or(0)
    });
    masks.fold(0, |all, mask| all | mask)
}

/// A mask of this many least significant bits.
pub(crate) fn low_bits(count: u16) -> u64 {
    match count {
        0 => 0,
        1..=63 => u64::MAX >> (64 - count),
        _ => u64::MAX,
    }
}

/// The branch that an integer selects, with its index.
pub(crate) fn select(union: &Union, discriminator: i128) -> Option<usize> {
    let has = |label: &i32| i128::from(*label) == discriminator;
    let labelled = union
        .branches
        .iter()
        .position(|branch| branch.labels.iter().any(has));
    labelled.or_else(|| union.branches.iter().position(|branch| branch.default))
}
