//! What the error of a system call says about the next attempt, and attempts with pauses between
//! them.
//!
//! | class | errors | what follows |
//! |---|---|---|
//! | transient | a signal, nothing there after all | the same call again |
//! | out of resources | memory, descriptors, space, locks | again after a pause; what can be refused is refused with OUT_OF_RESOURCES |
//! | final | all others | refused, or given up, with the error |
//!
//! An error is about the process that gets it, and never about a peer: only a few errors of
//! sockets say that the other end is closed. So a call whose failure would cost a connection, or
//! a member its place in the group, is [repeated](repeat) until it has failed for a while; and
//! what cannot be found out about another process is not known.

use std::io;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

/// What an error says about the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// The same call may succeed at once.
    Transient,
    /// The process, or the system, lacks something that it may have later.
    OutOfResources,
    /// The same call fails again.
    Final,
}

/// An error that has a class.
pub(crate) trait Classified {
    fn class(&self) -> ErrorClass;

    /// Whether the same call may succeed later.
    fn may_pass(&self) -> bool {
        self.class() != ErrorClass::Final
    }
}

impl Classified for Errno {
    fn class(&self) -> ErrorClass {
        match *self {
            Self::INTR | Self::AGAIN => ErrorClass::Transient,
            Self::NOMEM | Self::NOBUFS | Self::MFILE | Self::NFILE | Self::TOOMANYREFS => {
                ErrorClass::OutOfResources
            }
            Self::NOSPC | Self::DQUOT | Self::NOLCK => ErrorClass::OutOfResources,
            _ => ErrorClass::Final,
        }
    }
}

impl Classified for io::Error {
    fn class(&self) -> ErrorClass {
        let errno = Errno::from_io_error(self);
        errno.map_or(ErrorClass::Final, |errno| errno.class())
    }
}

/// Pause after the first failure; each one after that is twice as long.
const FIRST_PAUSE: Duration = Duration::from_micros(100);

/// Attempts before a failure counts, which then has lasted for about 50 ms: shorter than peers
/// wait for any answer.
const ATTEMPTS: u32 = 10;

/// Repeats a call for as long as its error may pass, with growing pauses. The last error counts.
pub(crate) fn repeat<T, E: Classified>(call: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    repeat_if(E::may_pass, call)
}

/// The same after any error: for calls of which one failure says little, as those on a file that
/// is open already.
pub(crate) fn repeat_always<T, E>(call: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    repeat_if(|_| true, call)
}

fn repeat_if<T, E>(
    may_pass: impl Fn(&E) -> bool,
    mut call: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        match call() {
            Err(error) if may_pass(&error) => {}
            done => return done,
        }
        thread::sleep(pause);
        pause *= 2;
    }
    call()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that fails so many times.
    fn fails(times: u32, errno: Errno) -> (u32, Result<u32, Errno>) {
        let mut calls = 0;
        let done = repeat(|| {
            calls += 1;
            match calls > times {
                true => Ok(calls),
                false => Err(errno),
            }
        });
        (calls, done)
    }

    #[test]
    fn a_call_is_repeated_while_its_error_may_pass() {
        assert_eq!(fails(0, Errno::NOMEM), (1, Ok(1)));
        for errno in [Errno::INTR, Errno::NOMEM, Errno::MFILE, Errno::NOSPC] {
            assert_eq!(fails(3, errno), (4, Ok(4)), "{errno}");
            assert_eq!(fails(1000, errno), (ATTEMPTS, Err(errno)));
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::CONNREFUSED, Errno::PIPE] {
            assert_eq!(fails(1000, errno), (1, Err(errno)), "{errno}");
        }
    }

    #[test]
    fn any_error_may_be_the_last_of_a_call_that_is_always_repeated() {
        let mut calls = 0;
        let done = repeat_always(|| {
            calls += 1;
            if calls < ATTEMPTS {
                return Err(Errno::IO);
            }
            Ok(calls)
        });
        assert_eq!(done, Ok(ATTEMPTS));
        assert_eq!(repeat_always(|| Err::<(), _>(Errno::IO)), Err(Errno::IO));
    }

    #[test]
    fn an_error_of_the_system_has_the_class_of_its_number() {
        let class = |error: io::Error| error.class();
        assert_eq!(class(Errno::NOBUFS.into()), ErrorClass::OutOfResources);
        assert_eq!(class(Errno::INTR.into()), ErrorClass::Transient);
        assert_eq!(class(Errno::PIPE.into()), ErrorClass::Final);
        assert_eq!(class(io::Error::other("what")), ErrorClass::Final);
    }
}
