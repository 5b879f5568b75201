//! Members with a header of their own: those of mutable structures, and in XCDR1
//! optional ones. Lengths are filled in when the value has been written, so that
//! values that nest deeply are walked over once.

use super::{Counter, Encoder, length_u32};
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

/// An open member with a header.
#[derive(Debug)]
#[must_use]
pub struct Parameter {
    /// What alignment counted from before.
    origin: usize,
    /// Where the value starts, behind the header.
    start: usize,
    header: Header,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Header {
    /// XCDR1, with the length in two bytes.
    Short,
    /// Ends in the length in four bytes.
    Long,
    /// Does not say the length.
    Silent,
}

/// Writes a member with its header.
pub(super) fn write<M: Member, E: Encoder>(
    encoder: &mut E,
    value: &Borrowed<M>,
) -> Result<(), CdrError> {
    let parameter = open::<M, E>(encoder, 0)?;
    M::Shape::write(value, encoder)?;
    close::<M, E>(encoder, parameter)
}

/// Bytes that the value of a member takes; 0 where its header does not say them.
pub(super) fn size<M: Member, E: Encoder>(
    encoder: &mut E,
    value: &Borrowed<M>,
) -> Result<usize, CdrError> {
    let representation = encoder.representation();
    match (representation, M::Shape::LENGTH_CODE) {
        (Representation::Xcdr2, LengthCode::Size(_) | LengthCode::Shared(_)) => Ok(0),
        _ => {
            let depth = *encoder.depth_mut();
            let mut counter = Counter::<E::Selection>::resume(representation, 0, 0, depth);
            M::Shape::write(value, &mut counter)?;
            Ok(counter.position())
        }
    }
}

/// Writes a header for a value of `size` bytes.
pub(super) fn open<M: Member, E: Encoder>(
    encoder: &mut E,
    size: usize,
) -> Result<Parameter, CdrError> {
    encoder.align(4)?;
    let restored = *encoder.origin_mut();
    let header = match encoder.representation() {
        Representation::Xcdr1 => {
            let header = open_xcdr1::<M, E>(encoder, size)?;
            *encoder.origin_mut() = encoder.position();
            header
        }
        Representation::Xcdr2 => open_xcdr2::<M, E>(encoder, size)?,
    };
    Ok(Parameter {
        origin: restored,
        start: encoder.position(),
        header,
    })
}

fn open_xcdr1<M: Member, E: Encoder>(encoder: &mut E, size: usize) -> Result<Header, CdrError> {
    match (u16::try_from(M::ID), u16::try_from(size)) {
        (Ok(id), Ok(size)) if M::ID <= SHORT_ID_MAX => {
            let flags = if M::MUST_UNDERSTAND {
                PID_MUST_UNDERSTAND
            } else {
                0
            };
            encoder.primitives(&[id | flags, size])?;
            Ok(Header::Short)
        }
        _ => {
            let (pid, id) = extended_header::<M>();
            encoder.primitives(&pid)?;
            encoder.primitives(&[id, length_u32(size)?])?;
            Ok(Header::Long)
        }
    }
}

/// The extended header of a member in XCDR1 up to its length. It must itself be
/// understood, whatever it says of the member.
pub(crate) fn extended_header<M: Member>() -> ([u16; 2], u32) {
    let flag = if M::MUST_UNDERSTAND {
        EXTENDED_MUST_UNDERSTAND
    } else {
        0
    };
    let pid = [PID_EXTENDED | PID_MUST_UNDERSTAND, EXTENSION as u16];
    (pid, (M::ID & MEMBER_ID_MASK) | flag)
}

fn open_xcdr2<M: Member, E: Encoder>(encoder: &mut E, size: usize) -> Result<Header, CdrError> {
    let code = M::Shape::LENGTH_CODE;
    let flag = if M::MUST_UNDERSTAND {
        EMHEADER_MUST_UNDERSTAND
    } else {
        0
    };
    let code_bits = u32::from(code.bits()) << 28;
    encoder.primitive(flag | code_bits | (M::ID & MEMBER_ID_MASK))?;
    if code != LengthCode::Next {
        return Ok(Header::Silent);
    }
    encoder.length(size)?;
    Ok(Header::Long)
}

/// Ends a member whose header was written with its size.
pub(super) fn end<E: Encoder>(encoder: &mut E, parameter: &Parameter) {
    *encoder.origin_mut() = parameter.origin;
}

/// Ends a member and tells its header how long it has become.
pub(super) fn close<M: Member, E: Encoder>(
    encoder: &mut E,
    parameter: Parameter,
) -> Result<(), CdrError> {
    end(encoder, &parameter);
    let start = parameter.start;
    let size = encoder.position() - start;
    match (parameter.header, u16::try_from(size)) {
        (Header::Silent, _) => {}
        (Header::Long, _) => encoder.patch(start - 4, length_u32(size)?),
        (Header::Short, Ok(size)) => encoder.patch(start - 2, size),
        (Header::Short, Err(_)) => {
            // What follows is aligned as counted from its start, and may move.
            encoder.insert(start, EXTENSION)?;
            let ([pid, length], id) = extended_header::<M>();
            encoder.patch(start - 4, pid);
            encoder.patch(start - 2, length);
            encoder.patch(start, id);
            encoder.patch(start + 4, length_u32(size)?);
        }
    }
    Ok(())
}
