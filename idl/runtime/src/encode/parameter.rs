//! Members with a header: those of mutable structures, and optional ones in XCDR1.
//! Lengths are filled in after the value is written, so that deeply nested values are
//! traversed once.

use super::{Encoder, length_u32};
use crate::encapsulation::Representation;
use crate::error::CdrError;
use crate::member::{Borrowed, Member};
use crate::shape::{LengthCode, Shape as _};

/// Largest member id of the short parameter header of XCDR1.
pub(crate) const SHORT_ID_MAX: u32 = 0x3f00;
/// XCDR1: an extended header follows.
pub(crate) const PID_EXTENDED: u16 = 0x3f01;
/// XCDR1: end of the parameter list.
pub(crate) const PID_SENTINEL: u16 = 0x3f02;
/// XCDR1: skip this one.
pub(crate) const PID_IGNORE: u16 = 0x3f03;
/// XCDR1: must be understood.
pub(crate) const PID_MUST_UNDERSTAND: u16 = 0x4000;
/// XCDR1: the bits of a parameter id that are not flags.
pub(crate) const PID_MASK: u16 = 0x3fff;
/// XCDR1: must be understood, in an extended header.
pub(crate) const EXTENDED_MUST_UNDERSTAND: u32 = 1 << 30;
/// XCDR2: must be understood.
pub(crate) const EMHEADER_MUST_UNDERSTAND: u32 = 1 << 31;
/// The member id in extended headers of XCDR1 and in headers of XCDR2.
pub(crate) const MEMBER_ID_MASK: u32 = 0x0fff_ffff;

/// Bytes that an extended header takes beyond a short one.
const EXTENSION: usize = 8;

/// The contents of a member header.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// Member id.
    pub id: u32,
    /// Whether readers that do not know it must refuse the sample.
    pub must_understand: bool,
    /// The encoding of the length in XCDR2.
    pub code: LengthCode,
}

impl Head {
    /// The header of a member of a generated type.
    pub(super) const fn of<M: Member>() -> Self {
        Self {
            id: M::ID,
            must_understand: M::MUST_UNDERSTAND,
            code: M::Shape::LENGTH_CODE,
        }
    }
}

/// An open member with a header.
#[derive(Debug)]
#[must_use]
pub struct OpenParameter {
    /// The origin of alignment of the enclosing structure.
    origin: usize,
    /// Offset of the value, after the header.
    start: usize,
    header: Header,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Header {
    /// XCDR1 with a length of two bytes.
    Short,
    /// Ends with a length of four bytes.
    Long,
    /// Without a length.
    Silent,
}

/// Writes a member with its header.
pub(super) fn write<M: Member, E: Encoder>(
    encoder: &mut E,
    value: &Borrowed<M>,
) -> Result<(), CdrError> {
    let parameter = open(encoder, Head::of::<M>())?;
    M::Shape::write(value, encoder)?;
    close(encoder, Head::of::<M>(), parameter)
}

/// Writes a header with room for the size of the value.
pub(super) fn open<E: Encoder>(encoder: &mut E, head: Head) -> Result<OpenParameter, CdrError> {
    encoder.align(4)?;
    let restored = *encoder.origin_mut();
    let header = match encoder.representation() {
        Representation::Xcdr1 => {
            let header = open_xcdr1(encoder, head)?;
            *encoder.origin_mut() = encoder.position();
            header
        }
        Representation::Xcdr2 => open_xcdr2(encoder, head)?,
    };
    Ok(OpenParameter {
        origin: restored,
        start: encoder.position(),
        header,
    })
}

fn open_xcdr1<E: Encoder>(encoder: &mut E, head: Head) -> Result<Header, CdrError> {
    match u16::try_from(head.id) {
        Ok(id) if head.id <= SHORT_ID_MAX => {
            let flags = if head.must_understand {
                PID_MUST_UNDERSTAND
            } else {
                0
            };
            encoder.primitives(&[id | flags, 0])?;
            Ok(Header::Short)
        }
        _ => {
            let (pid, id) = extended_header(head);
            encoder.primitives(&pid)?;
            encoder.primitives(&[id, 0])?;
            Ok(Header::Long)
        }
    }
}

/// The extended header of a member in XCDR1 up to its length. The header itself must be
/// understood, even if the member need not be.
fn extended_header(head: Head) -> ([u16; 2], u32) {
    let flag = if head.must_understand {
        EXTENDED_MUST_UNDERSTAND
    } else {
        0
    };
    let pid = [PID_EXTENDED | PID_MUST_UNDERSTAND, EXTENSION as u16];
    (pid, (head.id & MEMBER_ID_MASK) | flag)
}

fn open_xcdr2<E: Encoder>(encoder: &mut E, head: Head) -> Result<Header, CdrError> {
    let code = head.code;
    let flag = if head.must_understand {
        EMHEADER_MUST_UNDERSTAND
    } else {
        0
    };
    let code_bits = u32::from(code.bits()) << 28;
    encoder.primitive(flag | code_bits | (head.id & MEMBER_ID_MASK))?;
    if code != LengthCode::Next {
        return Ok(Header::Silent);
    }
    encoder.primitive(0_u32)?;
    Ok(Header::Long)
}

/// Ends a member and fills its length into the header.
pub(super) fn close<E: Encoder>(
    encoder: &mut E,
    head: Head,
    parameter: OpenParameter,
) -> Result<(), CdrError> {
    *encoder.origin_mut() = parameter.origin;
    let start = parameter.start;
    let size = encoder.position() - start;
    match (parameter.header, u16::try_from(size)) {
        (Header::Silent, _) => {}
        (Header::Long, _) => encoder.patch(start - 4, length_u32(size)?),
        (Header::Short, Ok(size)) => encoder.patch(start - 2, size),
        (Header::Short, Err(_)) => {
            // The value is aligned relative to its start, so that it can be moved.
            encoder.insert(start, EXTENSION)?;
            let ([pid, length], id) = extended_header(head);
            encoder.patch(start - 4, pid);
            encoder.patch(start - 2, length);
            encoder.patch(start, id);
            encoder.patch(start + 4, length_u32(size)?);
        }
    }
    Ok(())
}
