//! The shapes of types, tried out: a value of each, within its bounds; whether a view shows
//! it; and every way in which a builder is given it.
//!
//! What it takes for generated structures, unions and enumerations is written by
//! the build script (`build/code.rs`), because only they know their fields.

mod bits;
mod collections;
mod leaves;
mod wrapped;

use std::borrow::Borrow;

use spindle_dds_idl_runtime::in_place::Composite;
use spindle_dds_idl_runtime::shape::{MapKey, Shape, Union};
use spindle_dds_idl_runtime::{CdrError, Entries, List, Member, Room, Slot};

use crate::random::Random;
use crate::sample::Checked;

pub use bits::Literals;
pub use collections::{each, entries};

/// A shape of which values are made up, shown and built.
pub trait Tried: Shape + Sized {
    /// A value within the bounds of the type.
    fn any(random: &mut Random) -> Self::Owned;

    /// Whether this is what a view has to show.
    fn same(shown: Self::Shown<'_>, owned: &Self::Owned) -> bool;

    /// Appends a value to a list, in one of the ways there are.
    ///
    /// # Errors
    /// Those of the list.
    fn push<E: From<CdrError>>(
        list: &mut List<'_, Self, E>,
        value: &Self::Owned,
        random: &mut Random,
    ) -> Result<(), E> {
        let _ = random;
        list.push(value.borrow())
    }

    /// Appends an entry to a map, in one of the ways there are.
    ///
    /// # Errors
    /// Those of the map.
    fn insert<K: MapKey, E: From<CdrError>>(
        entries: &mut Entries<'_, K, Self, E>,
        key: &K::Borrowed,
        value: &Self::Owned,
        random: &mut Random,
    ) -> Result<(), E> {
        let _ = random;
        entries.insert(key, value.borrow())
    }
}

/// A generated structure or union, as one that a builder is given.
pub trait Fill: Composite {
    /// Gives a builder all of it, in one of the ways there are.
    ///
    /// # Errors
    /// Those of the builder.
    fn fill<R: Room>(
        &self,
        builder: Self::First<R>,
        random: &mut Random,
    ) -> Result<Self::Last<R>, R::Error>;
}

/// A generated topic type of which everything is tried.
pub trait Exercise: Checked + Tried<Owned = Self> {
    /// Whether there are `@default`s in it, which types known at run time do not have.
    const DEFAULTS: bool;
    /// The most memory that a value of any structure or union in it takes when nothing of
    /// it has been read.
    const ELEMENT_BYTES_MAX: usize;

    /// Whether a view's fields are those of the value.
    fn is_shown(view: &Self::View<'_>, value: &Self) -> bool;

    /// Builds the value in place.
    ///
    /// # Errors
    /// Those of the builder.
    fn build_all<S: Slot>(
        &self,
        builder: Self::Builder<S>,
        random: &mut Random,
    ) -> Result<S::Receipt, S::Error>;
}

/// A value of a member.
pub fn any<M: Member<Shape: Tried>>(random: &mut Random) -> <M::Shape as Shape>::Owned {
    M::Shape::any(random)
}

/// Whether a view shows a member's value.
pub fn same<M: Member<Shape: Tried>>(
    shown: <M::Shape as Shape>::Shown<'_>,
    owned: &<M::Shape as Shape>::Owned,
) -> bool {
    let same = M::Shape::same(shown, owned);
    if !same {
        eprintln!("the view shows another {}", M::PATH);
    }
    same
}

/// A value of a union's discriminator that selects `branch`, if one is found: one of
/// `labels`, or any other.
pub fn discriminator<U>(
    random: &mut Random,
    branch: Option<usize>,
    labels: &[<<U::Discriminator as Member>::Shape as Shape>::Owned],
) -> Option<<<U::Discriminator as Member>::Shape as Shape>::Owned>
where
    U: Union<Discriminator: Member<Shape: Tried>>,
{
    (0..100).find_map(|_| {
        let found = match labels {
            [_, ..] if random.coin() => labels[random.below(labels.len())],
            _ => any::<U::Discriminator>(random),
        };
        (U::select(found) == branch).then_some(found)
    })
}

/// The greatest of some numbers, at compile time.
pub const fn greatest(of: &[usize]) -> usize {
    let (mut greatest, mut index) = (0, 0);
    while index < of.len() {
        if of[index] > greatest {
            greatest = of[index];
        }
        index += 1;
    }
    greatest
}
