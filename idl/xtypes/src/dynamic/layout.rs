//! Offsets of the members of a type in its samples, and bounds of the size.
//!
//! Two traversals of the type compute the earliest and the latest end. Padding and lengths
//! are monotone, so these are bounds; where both agree, the offset is constant.

use std::cell::Cell;

use spindle_dds_idl_runtime::shape::LengthCode;
use spindle_dds_idl_runtime::{Representation, end_of_elements};

use super::DynamicType;
use super::plan::{Declared, Plan, bits, enum_size, word_size};
use crate::graph::{Extensibility, Member, Type, Union};
use crate::limits::DEPTH_MAX;

/// Most values traversed: nested types may have any number of them. Beyond it no bound is
/// found.
const VALUES_WALKED_MAX: u32 = 1_000_000;

/// Largest member id and largest size of the short parameter header of XCDR1.
const SHORT_ID_MAX: u32 = 0x3f00;
const SHORT_SIZE_MAX: usize = 0xffff;

/// The layout of all samples of a type in one representation, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleLayout {
    /// Fewest bytes of a sample; for a union, without a branch.
    pub size_min: usize,
    /// Most bytes of a sample; `None` without a bound.
    pub size_max: Option<usize>,
    /// For a final or appendable structure, the offset of the value of each member, those
    /// inherited first; `None` if it depends on the members before. Empty for other types.
    pub offsets: Vec<Option<usize>>,
}

impl DynamicType {
    /// The layout of samples in a representation. A recursive type has no upper bound, nor has
    /// a type of more than a million nested values.
    pub fn layout(&self, representation: Representation) -> SampleLayout {
        let left = [Cell::new(VALUES_WALKED_MAX), Cell::new(VALUES_WALKED_MAX)];
        let end = |most| End {
            plan: &self.plan,
            representation,
            most,
            at: Some(0),
            origin: 0,
            left: &left[usize::from(most)],
        };
        let (mut least, mut most) = (end(false), end(true));
        let mut offsets = Vec::new();
        let index = match self.plan.resolve(&self.ty) {
            Type::Declared(index) => Some(*index),
            _ => None,
        };
        match index.and_then(|index| self.plan.declared(index)) {
            Some(Declared::Struct(extensibility, members))
                if extensibility != Extensibility::Mutable =>
            {
                let depth = DEPTH_MAX - 1;
                for end in [&mut least, &mut most] {
                    end.begin(extensibility);
                }
                for member in members.iter() {
                    let starts = [&mut least, &mut most].map(|end| end.start(member, depth));
                    offsets.push(starts[0].filter(|_| starts[0] == starts[1]));
                    for end in [&mut least, &mut most] {
                        end.member(extensibility, member, depth);
                    }
                }
            }
            _ => {
                for end in [&mut least, &mut most] {
                    end.value(&self.ty, DEPTH_MAX);
                }
            }
        }
        SampleLayout {
            size_min: least.at.unwrap_or_default(),
            size_max: most.at,
            offsets,
        }
    }
}

/// The end of the traversed part.
#[derive(Clone)]
struct End<'p> {
    plan: &'p Plan,
    representation: Representation,
    /// Whether it is the latest end; else the earliest.
    most: bool,
    /// `None` without a bound.
    at: Option<usize>,
    origin: usize,
    /// Values that may still be traversed.
    left: &'p Cell<u32>,
}

impl End<'_> {
    fn add(&mut self, bytes: usize) {
        self.at = self.at.and_then(|at| at.checked_add(bytes));
    }

    fn align(&mut self, alignment: usize) {
        let alignment = alignment.clamp(1, self.representation.align_max());
        let origin = self.origin;
        self.at = self.at.and_then(|at| {
            let padded = (at - origin).checked_next_multiple_of(alignment)?;
            padded.checked_add(origin)
        });
    }

    fn primitives(&mut self, size: usize, count: u64) {
        let bytes = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(size));
        match bytes {
            Some(0) => {}
            Some(bytes) => {
                self.align(size);
                self.add(bytes);
            }
            None => self.at = None,
        }
    }

    /// The number of elements, at most `bound`, that gives this end.
    fn count(&mut self, bound: Option<u32>) -> u64 {
        match (self.most, bound) {
            (false, _) => 0,
            (true, Some(bound)) => u64::from(bound),
            (true, None) => {
                self.at = None;
                0
            }
        }
    }

    /// The size of the part that `walk` traverses, from an aligned start.
    fn size(&self, walk: impl FnOnce(&mut Self)) -> Option<usize> {
        let mut inner = Self {
            at: Some(0),
            origin: 0,
            ..self.clone()
        };
        walk(&mut inner);
        inner.at
    }

    fn repeat(&mut self, count: u64, element: impl Fn(&mut Self)) {
        let Some(start) = self.at else { return };
        self.at = end_of_elements(self.representation, start, count, |at| {
            self.at = Some(at);
            element(self);
            self.at
        });
    }

    fn delimiter(&mut self, plain: bool) {
        if !plain && self.representation == Representation::Xcdr2 {
            self.primitives(4, 1);
        }
    }

    fn begin(&mut self, extensibility: Extensibility) {
        self.delimiter(extensibility == Extensibility::Final);
    }

    fn end(&mut self, extensibility: Extensibility) {
        if extensibility == Extensibility::Mutable && self.representation == Representation::Xcdr1 {
            self.primitives(4, 1);
        }
    }

    fn value(&mut self, ty: &Type, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            // Recursive: nested any number of times, or not at all.
            if self.most {
                self.at = None;
            }
            return;
        };
        if self.at.is_none() {
            return;
        }
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None if self.most => self.at = None,
            None => return,
        }
        let plan = self.plan;
        match plan.resolve(ty) {
            Type::Primitive(primitive) => self.primitives(primitive.size(), 1),
            Type::String8(bound) => {
                self.primitives(4, 1);
                let count = self.count(*bound);
                self.primitives(1, count + 1);
            }
            Type::String16(bound) => {
                self.primitives(4, 1);
                let count = self.count(*bound);
                self.primitives(2, count);
            }
            Type::Sequence { element, bound } => {
                self.delimiter(plan.primitive(&element.ty).is_some());
                self.primitives(4, 1);
                let count = self.count(*bound);
                self.elements(&element.ty, count, depth);
            }
            Type::Array {
                element,
                dimensions,
            } => {
                self.delimiter(plan.primitive(&element.ty).is_some());
                let counts = dimensions.iter().map(|one| u64::from(*one));
                let count = counts.fold(1, u64::saturating_mul);
                self.elements(&element.ty, count, depth);
            }
            Type::Map { key, value, bound } => {
                self.delimiter(plan.plain_entries(&key.ty, &value.ty));
                self.primitives(4, 1);
                let count = self.count(*bound);
                self.repeat(count, |end| {
                    end.value(&key.ty, depth);
                    end.value(&value.ty, depth);
                });
            }
            Type::Declared(index) => match plan.declared(*index) {
                Some(Declared::Enum(one)) => self.primitives(enum_size(one), 1),
                Some(Declared::Bitmask(one)) => self.primitives(word_size(one.bit_bound), 1),
                Some(Declared::Bitset(one)) => self.primitives(word_size(bits(one)), 1),
                Some(Declared::Struct(extensibility, members)) => {
                    self.begin(extensibility);
                    for member in members.iter() {
                        self.member(extensibility, member, depth);
                    }
                    self.end(extensibility);
                }
                Some(Declared::Union(_, union)) => self.union(union, depth),
                None => {}
            },
        }
    }

    fn elements(&mut self, ty: &Type, count: u64, depth: usize) {
        match self.plan.primitive(ty) {
            Some(primitive) => self.primitives(primitive.size(), count),
            None => self.repeat(count, |end| end.value(ty, depth)),
        }
    }

    /// The start of the value of a member without a header.
    fn start(&self, member: &Member, depth: usize) -> Option<usize> {
        if member.optional {
            return None;
        }
        let alignment = self.plan.alignment(&member.ty, self.representation, depth);
        let mut start = self.clone();
        start.align(alignment);
        start.at
    }

    fn member(&mut self, extensibility: Extensibility, member: &Member, depth: usize) {
        let headed = extensibility == Extensibility::Mutable;
        let absent = member.optional && !self.most;
        match self.representation {
            _ if headed && absent => {}
            _ if !headed && !member.optional => self.value(&member.ty, depth),
            Representation::Xcdr1 => self.parameter_xcdr1(member, absent, depth),
            Representation::Xcdr2 if !headed => {
                self.primitives(1, 1);
                if !absent {
                    self.value(&member.ty, depth);
                }
            }
            Representation::Xcdr2 => {
                let code = self.plan.length_code(&member.ty, &member.range);
                self.parameter_xcdr2(&member.ty, code, depth);
            }
        }
    }

    fn parameter_xcdr1(&mut self, member: &Member, absent: bool, depth: usize) {
        let size = match absent {
            true => Some(0),
            false => self.size(|end| end.value(&member.ty, depth)),
        };
        self.header_xcdr1(member.id, size);
    }

    fn header_xcdr1(&mut self, id: u32, size: Option<usize>) {
        self.primitives(4, 1);
        let fits = id <= SHORT_ID_MAX && size.is_some_and(|size| size <= SHORT_SIZE_MAX);
        if !fits {
            self.add(8);
        }
        match size {
            Some(size) => self.add(size),
            None => self.at = None,
        }
    }

    fn parameter_xcdr2(&mut self, ty: &Type, code: LengthCode, depth: usize) {
        self.primitives(4, 1);
        if code == LengthCode::Next {
            self.add(4);
        }
        self.value(ty, depth);
    }

    /// The branch that ends first or last; no branch ends first.
    fn union(&mut self, union: &Union, depth: usize) {
        self.begin(union.extensibility);
        let headed = union.extensibility == Extensibility::Mutable;
        let ty = &union.discriminator.ty;
        match (headed, self.representation) {
            (false, _) => self.value(ty, depth),
            (true, Representation::Xcdr1) => {
                let size = self.size(|end| end.value(ty, depth));
                self.header_xcdr1(super::decode::DISCRIMINATOR_ID, size);
            }
            (true, Representation::Xcdr2) => {
                let code = self.plan.length_code(ty, super::plan::ANY);
                self.parameter_xcdr2(ty, code, depth);
            }
        }
        if self.most {
            let start = self.clone();
            for branch in &union.branches {
                let mut end = start.clone();
                end.member(union.extensibility, &branch.member, depth);
                self.at = self.at.zip(end.at).map(|(one, other)| one.max(other));
            }
        }
        self.end(union.extensibility);
    }
}

impl Plan {
    /// The alignment of the first byte of a value.
    fn alignment(&self, ty: &Type, representation: Representation, depth: usize) -> usize {
        let Some(depth) = depth.checked_sub(1) else {
            return 1;
        };
        let delimited = representation == Representation::Xcdr2;
        match self.resolve(ty) {
            Type::Primitive(primitive) => primitive.size(),
            Type::String8(_) | Type::String16(_) | Type::Sequence { .. } | Type::Map { .. } => 4,
            Type::Array { element, .. } => match self.primitive(&element.ty) {
                Some(primitive) => primitive.size(),
                None if delimited => 4,
                None => self.alignment(&element.ty, representation, depth),
            },
            Type::Declared(index) => match self.declared(*index) {
                Some(Declared::Enum(one)) => enum_size(one),
                Some(Declared::Bitmask(one)) => word_size(one.bit_bound),
                Some(Declared::Bitset(one)) => word_size(bits(one)),
                Some(Declared::Struct(extensibility, members)) => match extensibility {
                    Extensibility::Mutable => 4,
                    Extensibility::Appendable if delimited => 4,
                    _ => members.first().map_or(1, |first| match first.optional {
                        true if delimited => 1,
                        true => 4,
                        false => self.alignment(&first.ty, representation, depth),
                    }),
                },
                Some(Declared::Union(_, union)) => match union.extensibility {
                    Extensibility::Mutable => 4,
                    Extensibility::Appendable if delimited => 4,
                    _ => self.alignment(&union.discriminator.ty, representation, depth),
                },
                None => 1,
            },
        }
    }
}
