//! Arrays of fixed size, whose elements are changed in place.
//!
//! ```text
//!   | delimiter | element | pad element | pad element |
//!               ^first    ^second       ^             each after the one before,
//!                                                     with leading padding
//! ```
//!
//! The padding inside an element depends on its start modulo its largest alignment. After
//! the first part with that alignment it is the same for all, so all elements but the first
//! take the same number of bytes: the offset of an element is computed, not searched.

use std::fmt;
use std::marker::PhantomData;

use super::composite::{FixedComposite, Only};
use super::list::Listed;
use super::room::{Part, Site, offset};
use crate::encode::Encoder as _;
use crate::error::CdrError;
use crate::shape::Shape;

/// The elements of an array of `T` that has been written. It borrows the enclosing
/// builder.
pub struct Elements<'p, T, E> {
    part: Part<'p, E>,
    first: Site,
    /// Offset of the second element.
    second: usize,
    /// Bytes of each element but the first, with padding.
    stride: usize,
    count: usize,
    element: PhantomData<fn() -> T>,
}

impl<'p, T: Shape, E: From<CdrError>> Elements<'p, T, E> {
    pub(super) fn reopen<S: Listed<Element = T>>(part: Part<'p, E>, site: Site) -> Self {
        let mut counter = site.counter();
        if S::DELIMITED {
            // A counter has no limit that the writer before it did not have.
            let _ = counter.begin_collection(|_| Ok(()));
        }
        let (position, depth) = (counter.position(), *counter.depth_mut());
        let mut behind = || {
            let _ = T::write_initial(&mut counter);
            counter.position()
        };
        let second = behind();
        Self {
            part,
            first: Site {
                position: offset(position),
                ..site.at_depth(depth)
            },
            stride: behind() - second,
            second,
            count: S::COUNT_MAX as usize,
            element: PhantomData,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn site(&self, index: usize) -> Option<Site> {
        let position = match index.checked_sub(1) {
            None => self.first.position,
            Some(more) => offset(self.second.checked_add(more.checked_mul(self.stride)?)?),
        };
        (index < self.count).then_some(Site {
            position,
            ..self.first
        })
    }

    /// The builder of element `index`, `None` beyond the last.
    #[inline]
    pub fn get(&mut self, index: usize) -> Option<Only<'_, T, E>>
    where
        T: FixedComposite,
    {
        let site = self.site(index)?;
        Some(T::reopen(self.part.reborrow(), site))
    }

    /// The elements of row `index` of an array of arrays, `None` beyond the last.
    #[inline]
    pub fn row(&mut self, index: usize) -> Option<Elements<'_, T::Element, E>>
    where
        T: Listed,
    {
        let site = self.site(index)?;
        Some(Elements::reopen::<T>(self.part.reborrow(), site))
    }
}

impl<T, E> fmt::Debug for Elements<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elements")
            .field("count", &self.count)
            .field("first", &self.first)
            .finish_non_exhaustive()
    }
}
