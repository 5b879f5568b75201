//! Results of libibverbs.

use std::io;

/// The result of a call that returns an error number.
pub(super) fn checked(errno: i32) -> io::Result<()> {
    match errno {
        0 => Ok(()),
        // Some calls return -1 and set errno, others the number, with either sign.
        -1 => Err(io::Error::last_os_error()),
        errno => Err(io::Error::from_raw_os_error(errno.abs())),
    }
}
