//! Nested structures, with builders of their own.

use super::room::{Part, Room, Site};
use crate::error::CdrError;
use crate::shape::{OrDefault, Shape};

/// A generated structure that can be built in place.
pub trait Composite: Shape {
    /// Its builder in its first stage.
    type First<R: Room>;
    /// Its builder in its last stage: all members with a fixed order are written.
    type Last<R: Room>;

    /// Starts building.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    fn begin<R: Room>(room: R, site: Site) -> Result<Self::First<R>, CdrError>;

    /// Completes the structure and returns the offset after it.
    ///
    /// # Errors
    /// [`CdrError::Full`]; [`CdrError::MissingMember`]; errors of earlier setters.
    fn close<R: Room>(last: &mut Self::Last<R>) -> Result<usize, CdrError>;
}

/// A final or appendable structure of fixed size: complete from the start, and changed
/// in place.
pub trait FixedComposite: Composite {
    /// Its only stage.
    type Only<R: Room>;

    /// Writes the defaults; also returns the offset after them.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    fn add<R: Room>(room: R, site: Site) -> Result<(Self::Only<R>, usize), CdrError>;

    /// A builder over a value that has been written.
    fn reopen<R: Room>(room: R, site: Site) -> Self::Only<R>;
}

impl<S: Composite> Composite for OrDefault<S> {
    type First<R: Room> = S::First<R>;
    type Last<R: Room> = S::Last<R>;

    fn begin<R: Room>(room: R, site: Site) -> Result<S::First<R>, CdrError> {
        S::begin(room, site)
    }

    fn close<R: Room>(last: &mut S::Last<R>) -> Result<usize, CdrError> {
        S::close(last)
    }
}

impl<S: FixedComposite> FixedComposite for OrDefault<S> {
    type Only<R: Room> = S::Only<R>;

    fn add<R: Room>(room: R, site: Site) -> Result<(S::Only<R>, usize), CdrError> {
        S::add(room, site)
    }

    fn reopen<R: Room>(room: R, site: Site) -> S::Only<R> {
        S::reopen(room, site)
    }
}

/// The builder that a closure gets, for a `T` in a sample with the error type `E`.
pub type First<'p, T, E> = <T as Composite>::First<Part<'p, E>>;
/// The builder that the closure returns.
pub type Last<'p, T, E> = <T as Composite>::Last<Part<'p, E>>;
/// The builder of a structure of fixed size.
pub type Only<'p, T, E> = <T as FixedComposite>::Only<Part<'p, E>>;

/// A closure that builds a `T` in a sample with the error type `E`: it gets the builder in
/// its first stage and returns it in its last.
pub trait Build<'p, T: Composite, E>: FnOnce(First<'p, T, E>) -> Result<Last<'p, T, E>, E>
where
    E: From<CdrError>,
{
}

impl<'p, T, E, F> Build<'p, T, E> for F
where
    T: Composite,
    E: From<CdrError>,
    F: FnOnce(First<'p, T, E>) -> Result<Last<'p, T, E>, E>,
{
}
