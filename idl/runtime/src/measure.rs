//! The largest encoded size of a type.
//!
//! Padding and lengths are monotone: if every part ends as late as possible, so does the
//! whole. One traversal of the type that tracks the latest end is enough.

use crate::encapsulation::{Extensibility, Representation};
use crate::encode::{Members, SHORT_ID_MAX};
use crate::member::{Member, is_parameter};
use crate::shape::{LengthCode, Shape, UNBOUNDED};

/// The end of `count` consecutive elements that begin at `start`, `None` without a bound.
/// `element` maps the start of an element to its end.
///
/// The length of an element depends only on its start modulo the largest alignment, so the
/// lengths repeat in a cycle as soon as a start modulo that alignment repeats. Therefore
/// few elements are traversed for any count, and the end is exact.
pub fn end_of_elements(
    representation: Representation,
    start: usize,
    count: u64,
    mut element: impl FnMut(usize) -> Option<usize>,
) -> Option<usize> {
    let mut begun = [None; Representation::Xcdr1.align_max()];
    let (mut end, mut left) = (start, count);
    while left > 0 {
        let begins = &mut begun[end % representation.align_max()];
        match begins.replace((end, left)) {
            Some((end_then, left_then)) => {
                let round = left_then - left;
                let bytes = usize::try_from(left / round)
                    .ok()?
                    .checked_mul(end - end_then)?;
                end = end.checked_add(bytes)?;
                left %= round;
                begun.fill(None);
            }
            None => {
                end = element(end)?;
                left -= 1;
            }
        }
    }
    Some(end)
}

/// A traversal of a type that computes its largest size.
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

    /// Records that the size has no bound.
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
        let Some(start) = self.end else { return };
        self.end = end_of_elements(self.representation, start, u64::from(bound), |end| {
            self.end = Some(end);
            element(self);
            self.end
        });
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

    /// Adds the bytes before the members of a structure.
    pub fn begin(&mut self, extensibility: Extensibility) {
        if extensibility != Extensibility::Final && self.members != Members::KeyHash {
            self.collection();
        }
    }

    /// Adds the bytes after the members of a structure.
    pub fn end(&mut self, extensibility: Extensibility) {
        if extensibility == Extensibility::Mutable
            && self.members != Members::KeyHash
            && self.representation == Representation::Xcdr1
        {
            self.primitives(4, 1);
        }
    }

    /// Adds a member through which the structure contains itself, which has no bound.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The result equals that of counting each element, for any element and any start.
    #[test]
    fn ends_are_those_of_a_walk_over_all() {
        let parts = [
            &[][..],
            &[1],
            &[1, 8, 2],
            &[4, 1, 1, 1],
            &[2, 4, 1, 8, 1],
            &[8, 1],
        ];
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            for parts in parts {
                let element = |end: usize| {
                    let add = |end: usize, size: &usize| {
                        let alignment = *size.min(&representation.align_max());
                        end.next_multiple_of(alignment) + size
                    };
                    Some(parts.iter().fold(end, add))
                };
                for start in 0..9 {
                    for count in 0..70 {
                        let walked = (0..count).try_fold(start, |end, _| element(end));
                        let found = end_of_elements(representation, start, count, element);
                        assert_eq!(found, walked, "{count} of {parts:?} from {start}");
                    }
                }
            }
        }
    }

    #[test]
    fn few_elements_are_walked_over_and_no_end_overflows() {
        let mut walked = 0;
        let end = end_of_elements(Representation::Xcdr1, 3, u64::MAX, |end| {
            walked += 1;
            Some(end)
        });
        assert_eq!((end, walked), (Some(3), 1));
        let byte_more = |end: usize| end.checked_add(1);
        let all = end_of_elements(Representation::Xcdr1, 0, u64::MAX, byte_more);
        assert_eq!(all, Some(usize::MAX));
        let beyond = end_of_elements(Representation::Xcdr1, 1, u64::MAX, byte_more);
        assert_eq!(beyond, None);
    }
}
