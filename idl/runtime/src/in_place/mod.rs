//! The common part of generated builders: a sample that grows in a slot.
//!
//! A sample is written front to back. Members of fixed size are written with their
//! defaults as soon as their offset is known and may be replaced later; members of
//! varying size are appended once, with their value. So this sample writes each byte
//! up to its end, including padding, and no byte of an older sample remains. Members
//! of mutable structures are appended when they are set, in any order.
//!
//! ```text
//!   slot   | delimiter | fixed members | member | fixed members | member ..    |
//!                        set, replaced   ^appended               ^end
//!                                                                | part        |
//!                                                                 ^ a structure or
//!                                                                   list inside
//! ```
//!
//! A nested value has a builder of its own in the rest of the memory, a [`Part`],
//! after the end of the enclosing structure. The enclosing builder is borrowed
//! meanwhile, and counts the nested value only once it is complete: an inner builder
//! that is dropped half-way leaves no trace.
//!
//! `room.rs` has the memory of structures, `composite.rs` nested structures, `list.rs`,
//! `entries.rs` and `numbers.rs` collections in their `frame.rs`, `elements.rs` arrays
//! that are already written, `nested.rs` and `mutable.rs` the operations of [`InPlace`]
//! for nested values and for members with headers.

mod composite;
mod elements;
mod entries;
mod frame;
mod list;
mod mutable;
mod nested;
mod numbers;
mod room;

pub use composite::{Build, Composite, First, FixedComposite, Last, Only};
pub use elements::Elements;
pub use entries::{Entries, Mapped};
pub use list::{List, Listed};
pub use nested::Numbers;
pub use numbers::SeqMut;
pub use room::{Part, Room, Site};

use std::borrow::Borrow;

use crate::encapsulation::{Extensibility, Representation};
use crate::encode::{AllMembers, Counter, Encoder as _, Writer, check_bound, length_u32};
use crate::error::{CdrError, InMember};
use crate::key::{KeyHash, KeyHasher};
use crate::member::{Borrowed, Member, is_parameter};
use crate::shape::{Bytes, Optional, Shape};
use crate::topic::Slot;
use room::{Fault, offset};

/// A structure with `N` members under construction.
#[derive(Debug)]
pub struct InPlace<R, const N: usize> {
    room: R,
    /// Its start, with the depth inside it.
    site: Site,
    /// Offset of its end so far.
    end: u32,
    /// Offset of the value of each member, once written.
    at: [u32; N],
    fault: Fault,
}

impl<R: Room, const N: usize> InPlace<R, N> {
    /// Starts a structure.
    ///
    /// # Errors
    /// [`CdrError::Full`], [`CdrError::TooDeep`].
    #[inline]
    pub fn start(room: R, site: Site, extensibility: Extensibility) -> Result<Self, CdrError> {
        let mut structure = Self::unwritten(room, site);
        let mut writer = structure.writer();
        // Values too deep to be read are not written.
        writer.deeper()?;
        if site.is_delimited(extensibility) {
            writer.primitive(0_u32)?;
        }
        let (end, depth) = (writer.position(), *writer.depth_mut());
        structure.end = length_u32(end)?;
        structure.site = structure.site.at_depth(depth);
        Ok(structure)
    }

    /// A builder over a structure that has been written, to change its members.
    #[inline]
    pub fn reopen(room: R, site: Site, extensibility: Extensibility) -> Self {
        let mut structure = Self::unwritten(room, site);
        structure.end = structure.body(extensibility);
        structure.site = site.at_depth(site.depth().saturating_add(1));
        structure
    }

    #[inline]
    fn unwritten(room: R, site: Site) -> Self {
        Self {
            room,
            site,
            end: site.position,
            at: [0; N],
            fault: Fault::default(),
        }
    }

    /// Offset after the delimiter, where the first member starts.
    #[inline]
    fn body(&self, extensibility: Extensibility) -> u32 {
        let start = self.site.position;
        match self.site.is_delimited(extensibility) {
            true => self.count(start, |counter| counter.primitive(0_u32)),
            false => start,
        }
    }

    #[inline]
    fn bytes(&mut self) -> &mut [u8] {
        self.room.split(&mut self.fault).0
    }

    #[inline]
    fn fault(&mut self) -> &mut Fault {
        self.room.split(&mut self.fault).1
    }

    #[inline]
    fn writer(&mut self) -> Writer<'_, AllMembers> {
        let site = self.here(self.end);
        site.writer(self.bytes())
    }

    /// This structure, from `position` on.
    #[inline]
    fn here(&self, position: u32) -> Site {
        Site {
            position,
            ..self.site
        }
    }

    /// The end of the bytes that `write` would write at `position`.
    #[inline]
    fn count(
        &self,
        position: u32,
        write: impl FnOnce(&mut Counter) -> Result<(), CdrError>,
    ) -> u32 {
        let mut counter = self.here(position).counter();
        // A counter has no limit.
        let _ = write(&mut counter);
        offset(counter.position())
    }

    /// The start of the value of a member. In XCDR1, the value of a member of a mutable
    /// structure is an origin of alignment.
    #[inline]
    fn value<M: Member>(&self) -> Site {
        let start = self.at[M::INDEX];
        match (self.site.representation(), M::EXTENSIBILITY) {
            (Representation::Xcdr1, Extensibility::Mutable) => Site {
                origin: start,
                ..self.here(start)
            },
            _ => self.here(start),
        }
    }

    /// Appends a member.
    ///
    /// # Errors
    /// [`CdrError::Full`], [`CdrError::RepeatedMember`], or the value is invalid.
    #[inline]
    pub fn append<M: Member>(&mut self, value: &Borrowed<M>) -> Result<(), CdrError> {
        self.append_with::<M>(|writer| M::Shape::write(value, writer))
    }

    /// Appends a member with its default.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
    pub fn append_default<M: Member>(&mut self) -> Result<(), CdrError> {
        self.append_with::<M>(|writer| M::write_initial(writer))
    }

    /// Appends an optional member, or the mark of its absence.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    #[inline]
    pub fn append_optional<M, S>(&mut self, value: Option<&S::Borrowed>) -> Result<(), CdrError>
    where
        M: Member<Shape = Optional<S>>,
        S: Shape,
    {
        match value {
            Some(value) => self.append_with::<M>(|writer| S::write(value, writer)),
            None => {
                self.only_once::<M>()?;
                let mut writer = self.writer();
                writer.member::<M>(M::Shape::initial().borrow())?;
                self.end = length_u32(writer.position())?;
                Ok(())
            }
        }
    }

    /// Skips a member of fixed size that has been written.
    #[inline]
    pub fn pass<M: Member>(&mut self) {
        self.at[M::INDEX] = self.end;
        self.end = self.count(self.end, |counter| M::write_initial(counter));
    }

    /// Appends a sequence of `len` bytes that `fill` writes in place; they are zeroed
    /// before if `zero` is set.
    ///
    /// # Errors
    /// [`CdrError::Full`], [`CdrError::BoundExceeded`], [`CdrError::RepeatedMember`].
    #[inline]
    pub fn append_bytes<M: Member, S: Bytes>(
        &mut self,
        len: usize,
        zero: bool,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), CdrError> {
        check_bound(len, S::BOUND, self.end as usize).in_member(M::PATH)?;
        self.append_with::<M>(|writer| {
            writer.length(len)?;
            writer.reserve(len).map(drop)
        })?;
        // The bookkeeping of the member is done before `fill`, not after it: the returned builder
        // is loaded as a whole, and recent stores to parts of it would stall behind all stores
        // of `fill`.
        let end = self.end as usize;
        let bytes = self.bytes().get_mut(end - len..end).unwrap_or_default();
        if zero {
            bytes.fill(0);
        }
        fill(bytes);
        Ok(())
    }

    /// Appends a member: its header, if any, and its value.
    #[inline]
    fn append_with<M: Member>(
        &mut self,
        write: impl FnOnce(&mut Writer<'_, AllMembers>) -> Result<(), CdrError>,
    ) -> Result<(), CdrError> {
        let open = self.open::<M>()?;
        let mut writer = open.site.writer(self.bytes());
        write(&mut writer).in_member(M::PATH)?;
        let end = writer.position();
        self.shut::<M>(open, end)
    }

    /// Replaces a member of fixed size; in a mutable structure, appends it the first time.
    /// [`close`](Self::close) reports an error of this call.
    #[inline]
    pub fn set<M: Member>(&mut self, value: &Borrowed<M>) {
        let written = match is_parameter::<M>() && !self.has::<M>() {
            true => self.append::<M>(value),
            false => self.replace::<M>(value),
        };
        if let Err(error) = written {
            self.fault().note(error.in_member(M::PATH));
        }
    }

    /// Replaces all members of a structure of fixed size, which is an `S`.
    #[inline]
    pub fn set_all<S: Shape>(&mut self, value: &S::Borrowed) {
        let site = self.site.at_depth(self.site.depth().saturating_sub(1));
        if let Err(error) = S::write(value, &mut site.writer(self.bytes())) {
            self.fault().note(error);
        }
    }

    #[inline]
    fn replace<M: Member>(&mut self, value: &Borrowed<M>) -> Result<(), CdrError> {
        let site = self.value::<M>();
        M::Shape::write(value, &mut site.writer(self.bytes()))
    }

    /// Writes a member to a key hash, from its bytes in the sample.
    ///
    /// # Errors
    /// Only if the memory has been altered.
    pub fn hash<M: Member>(&mut self, hasher: &mut KeyHasher) -> Result<(), CdrError> {
        let site = self.value::<M>();
        let end = self.end as usize;
        let bytes = self.bytes().get(..end).unwrap_or_default();
        M::Shape::transcribe_key(&mut site.reader(bytes), hasher)
    }

    /// Completes the structure: writes its length or its end. Returns the offset
    /// after it.
    ///
    /// # Errors
    /// [`CdrError::Full`], or the error of an earlier setter.
    #[inline]
    pub fn close(&mut self, extensibility: Extensibility) -> Result<usize, CdrError> {
        self.fault().report()?;
        if self.site.is_delimited(extensibility) {
            let body = self.body(extensibility);
            let length = self.end.saturating_sub(body);
            self.writer().patch(body as usize - 4, length);
        } else if extensibility == Extensibility::Mutable {
            let mut writer = self.writer();
            writer.sentinel()?;
            self.end = length_u32(writer.position())?;
        }
        Ok(self.end as usize)
    }
}

impl<S: Slot, const N: usize> InPlace<S, N> {
    /// Publishes a sample that has been closed.
    ///
    /// # Errors
    /// Those of the slot.
    #[inline]
    pub fn publish(self, key: KeyHash) -> Result<S::Receipt, S::Error> {
        self.room.finish(self.end as usize, key)
    }
}
