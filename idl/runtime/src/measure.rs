//! The most bytes that values of a type can take.
//!
//! Padding and lengths are monotone: if every part before ends as late as it can,
//! so does the whole. One walk over the type with the latest end is enough.

use crate::encapsulation::{Extensibility, Representation};
use crate::encode::{Members, SHORT_ID_MAX};
use crate::member::{Member, is_parameter};
use crate::shape::{LengthCode, Shape, UNBOUNDED};

/// Elements up to this many are measured one by one, which is exact.
const ELEMENTS_WALKED_MAX: u32 = 64;

/// Walks over a type.
#[derive(Debug, Clone)]
pub struct Measure {
    /// Latest end so far, `None` without a bound.
    end: Option<usize>,
    origin: usize,
    representation: Representation,
    members: Members,
}

impl Measure {
    /// Most bytes of a value of `S` from an aligned start.
    pub fn of<S: Shape>(representation: Representation, members: Members) -> Option<usize> {
        let mut measure = Self {
            end: Some(0),
            origin: 0,
            representation,
            members,
        };
        S::measure(&mut measure);
        measure.end
    }

    /// There is no bound.
    pub fn unbounded(&mut self) {
        self.end = None;
    }

    fn add(&mut self, bytes: usize) {
        self.end = self.end.and_then(|end| end.checked_add(bytes));
    }

    fn align(&mut self, alignment: usize) {
        let alignment = alignment.min(self.representation.align_max());
        let origin = self.origin;
        self.end = self.end.and_then(|end| {
            (end - origin)
                .checked_next_multiple_of(alignment)?
                .checked_add(origin)
        });
    }

    /// Adds `count` primitives of `size` bytes.
    pub fn primitives(&mut self, size: usize, count: usize) {
        match size.checked_mul(count) {
            Some(0) => {}
            Some(bytes) => {
                self.align(size);
                self.add(bytes);
            }
            None => self.end = None,
        }
    }

    /// Adds at most `bound` primitives of `size` bytes and `extra` bytes.
    pub fn bounded(&mut self, size: usize, bound: u32, extra: usize) {
        if bound == UNBOUNDED {
            self.end = None;
        }
        self.primitives(size, bound as usize);
        self.add(extra);
    }

    /// Adds at most `bound` elements.
    pub fn repeat<S: Shape>(&mut self, bound: u32) {
        self.repeat_of(bound, S::measure);
    }

    /// Adds `element` at most `bound` times.
    pub(crate) fn repeat_of(&mut self, bound: u32, element: fn(&mut Self)) {
        if bound == UNBOUNDED {
            self.end = None;
        }
        if bound <= ELEMENTS_WALKED_MAX {
            for _ in 0..bound {
                self.value(element);
            }
            return;
        }
        if self.end.is_some() {
            // From any start, an element ends no later than from the next aligned one.
            let size = Self {
                end: Some(0),
                origin: 0,
                ..self.clone()
            }
            .size_of(element);
            let size = size.and_then(|size| size.checked_next_multiple_of(8));
            self.align(8);
            match size.and_then(|size| size.checked_mul(bound as usize)) {
                Some(bytes) => self.add(bytes),
                None => self.end = None,
            }
        }
    }

    fn size_of(mut self, value: fn(&mut Self)) -> Option<usize> {
        value(&mut self);
        self.end
    }

    fn value(&mut self, value: fn(&mut Self)) {
        if self.end.is_some() {
            value(self);
        }
    }

    /// Adds the delimiter of a collection of non-primitive elements.
    pub fn collection(&mut self) {
        if self.representation == Representation::Xcdr2 {
            self.primitives(4, 1);
        }
    }

    /// Adds what stands before the members of a structure.
    pub fn begin(&mut self, extensibility: Extensibility) {
        if extensibility != Extensibility::Final && self.members != Members::KeyHash {
            self.collection();
        }
    }

    /// Adds what stands behind the members of a structure.
    pub fn end(&mut self, extensibility: Extensibility) {
        if extensibility == Extensibility::Mutable
            && self.members != Members::KeyHash
            && self.representation == Representation::Xcdr1
        {
            self.primitives(4, 1);
        }
    }

    /// Adds a member through which the structure contains itself: it has no bound.
    pub fn recursive_member<M: Member>(&mut self) {
        if self.members.includes(M::KEY) {
            self.unbounded();
        }
    }

    /// Adds the longest of several alternatives, or nothing.
    pub fn choice(&mut self, alternatives: &[fn(&mut Self)]) {
        let before = self.clone();
        for alternative in alternatives {
            let mut measure = before.clone();
            alternative(&mut measure);
            self.end = match (self.end, measure.end) {
                (Some(longest), Some(end)) => Some(longest.max(end)),
                _ => None,
            };
        }
    }

    /// Adds a member.
    pub fn member<M: Member>(&mut self) {
        if !self.members.includes(M::KEY) {
            return;
        }
        let headed = is_parameter::<M>() && self.members != Members::KeyHash;
        if !headed && !M::Shape::OPTIONAL {
            return self.value(M::Shape::measure);
        }
        match self.representation {
            Representation::Xcdr1 => {
                self.primitives(4, 1);
                self.parameter_xcdr1::<M::Shape>(M::ID);
            }
            Representation::Xcdr2 => {
                if !headed {
                    self.primitives(1, 1);
                } else {
                    self.primitives(4, 1);
                    if M::Shape::LENGTH_CODE == LengthCode::Next {
                        self.add(4);
                    }
                }
                self.value(M::Shape::measure);
            }
        }
    }

    fn parameter_xcdr1<S: Shape>(&mut self, id: u32) {
        let size = Self {
            end: Some(0),
            origin: 0,
            ..self.clone()
        }
        .size_of(S::measure);
        let short = id <= SHORT_ID_MAX && size.is_some_and(|size| size <= usize::from(u16::MAX));
        if !short {
            self.add(8);
        }
        match size {
            Some(size) => self.add(size),
            None => self.end = None,
        }
    }
}
