//! Exercises of shapes: a random value of each within its bounds, the comparison with a view,
//! and every way to pass it to a builder.
//!
//! The build script (`build/code.rs`) writes the implementations for generated structures,
//! unions and enumerations, which depend on their fields.

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

/// A shape whose values can be made, compared with views and built.
pub trait ExerciseShape: Shape + Sized {
    /// A value within the bounds of the type.
    fn any(random: &mut Random) -> Self::Owned;

    /// Whether a view shows this value.
    fn same(shown: Self::Shown<'_>, owned: &Self::Owned) -> bool;

    /// Appends a value to a list, in a random way.
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

    /// Appends an entry to a map, in a random way.
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

/// A generated structure or union that can be passed to its builder.
pub trait Fill: Composite {
    /// Passes the value to a builder, in a random way.
    ///
    /// # Errors
    /// Those of the builder.
    fn fill<R: Room>(
        &self,
        builder: Self::First<R>,
        random: &mut Random,
    ) -> Result<Self::Last<R>, R::Error>;
}

/// A generated topic type that can be exercised.
pub trait Exercise: Checked + ExerciseShape<Owned = Self> {
    /// Whether it contains `@default`s, which dynamic types do not have.
    const DEFAULTS: bool;
    /// Largest memory in bytes of the default of any structure or union in it.
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
pub fn any<M: Member<Shape: ExerciseShape>>(random: &mut Random) -> <M::Shape as Shape>::Owned {
    M::Shape::any(random)
}

/// Whether a view shows a member's value.
pub fn same<M: Member<Shape: ExerciseShape>>(
    shown: <M::Shape as Shape>::Shown<'_>,
    owned: &<M::Shape as Shape>::Owned,
) -> bool {
    let same = M::Shape::same(shown, owned);
    if !same {
        eprintln!("the view shows another {}", M::PATH);
    }
    same
}

/// A discriminator that selects `branch`, if one is found: one of `labels`, or any other.
pub fn discriminator<U>(
    random: &mut Random,
    branch: Option<usize>,
    labels: &[<<U::Discriminator as Member>::Shape as Shape>::Owned],
) -> Option<<<U::Discriminator as Member>::Shape as Shape>::Owned>
where
    U: Union<Discriminator: Member<Shape: ExerciseShape>>,
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
