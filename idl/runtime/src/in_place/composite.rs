//! Structures inside of samples, built by builders of their own.

use super::room::{Part, Room, Site};
use crate::error::CdrError;
use crate::shape::{OrDefault, Shape};

/// A generated structure, as something that is built in place.
pub trait Composite: Shape {
    /// Its builder in its first stage.
    type First<R: Room>;
    /// Its builder in its last stage: nothing is left that must be written in order.
    type Last<R: Room>;

    /// Starts building.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    fn begin<R: Room>(room: R, site: Site) -> Result<Self::First<R>, CdrError>;

    /// Completes what has been built and returns the offset behind it.
    ///
    /// # Errors
    /// [`CdrError::Full`]; [`CdrError::MissingMember`]; what a setter found.
    fn close<R: Room>(last: &mut Self::Last<R>) -> Result<usize, CdrError>;
}

/// A final or appendable structure all of whose values have the same size: complete
/// from the start, and open to change where it lies.
pub trait FixedComposite: Composite {
    /// Its only stage.
    type Only<R: Room>;

    /// Writes the defaults; also returns the offset behind them.
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

/// The builder that a closure is handed, for a `T` in a sample whose error is `E`.
pub type First<'p, T, E> = <T as Composite>::First<Part<'p, E>>;
/// The builder that it hands back.
pub type Last<'p, T, E> = <T as Composite>::Last<Part<'p, E>>;
/// The builder of a structure of fixed size.
pub type Only<'p, T, E> = <T as FixedComposite>::Only<Part<'p, E>>;

/// What builds a `T` in a sample whose error is `E`: a closure that is handed the
/// builder in its first stage and hands it back in its last.
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
