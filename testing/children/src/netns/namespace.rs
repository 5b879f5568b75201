//! A network namespace without a name: the kernel removes it, and the interfaces in it, when this
//! process and those in the namespace have ended, in whatever way.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// A new namespace. It lasts as long as this handle, and as the processes and interfaces in it.
#[derive(Debug)]
pub(super) struct Namespace(File);

impl Namespace {
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN; EINVAL if the kernel has no network namespaces.
    pub(super) fn new() -> io::Result<Self> {
        in_thread(|| {
            #[expect(
                deprecated,
                reason = "unsafe_code is forbidden here, and only descriptors cannot be unshared safely"
            )]
            rustix::thread::unshare(UnshareFlags::NEWNET)?;
            Ok(Self(File::open(OWN)?))
        })
    }

    /// By this path other processes enter the namespace, as long as this one lives.
    pub(super) fn path(&self) -> PathBuf {
        let (process, descriptor) = (std::process::id(), self.0.as_raw_fd());
        format!("/proc/{process}/fd/{descriptor}").into()
    }

    /// Does some work in a thread that is in the namespace, as are the processes that it starts.
    pub(super) fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        in_thread(|| {
            enter(&self.0)?;
            work()
        })
    }
}

/// Moves the calling thread, and those that it starts from now on, into the namespace at `path`.
///
/// # Errors
/// There is no such namespace any more, or EPERM without CAP_SYS_ADMIN.
pub fn enter_by_path(path: &Path) -> io::Result<()> {
    enter(&File::open(path)?)
}

fn enter(namespace: &File) -> io::Result<()> {
    let network = Some(LinkNameSpaceType::Network);
    Ok(move_into_link_name_space(namespace.as_fd(), network)?)
}

/// The namespace of the calling thread does not change.
fn in_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, work)?;
        match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

const OWN: &str = "/proc/thread-self/ns/net";
