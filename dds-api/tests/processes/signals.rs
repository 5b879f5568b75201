//! Signals: they are the application's, whatever thread of the process could take them.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use spindle_dds::DomainParticipant;

use crate::scene::{self, Child};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_signal_that_a_program_blocks_is_read_from_its_signalfd_and_runs_on_no_thread_of_the_library() {
    scene::play("signals::process", "signals");
}

/// Not a test by itself. The child has one thread, as a program of its own has.
#[test]
fn process() {
    if scene::current().is_some() {
        Child::fork(program).join();
    }
}

/// The thread on which the handler ran last; 0: none.
static HANDLED_BY: AtomicI32 = AtomicI32::new(0);

extern "C" fn handle(_: i32) {
    // SAFETY: async-signal-safe; touches no memory.
    HANDLED_BY.store(unsafe { libc::gettid() }, Ordering::SeqCst);
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `set` has room for a set, which the call initializes.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialized above.
    let mut set = unsafe { set.assume_init() };
    for signal in signals {
        // SAFETY: an initialized set.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    set
}

fn change_mask(how: i32, signals: &[i32]) {
    let set = set_of(signals);
    // SAFETY: the set lives during the call.
    unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) };
}

fn send_to_myself(signal: Signal) {
    rustix::process::kill_process(rustix::process::getpid(), signal).expect("sent");
}

fn program() -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let [low, high, ..] = std::process::id().to_le_bytes();
    let participant = DomainParticipant::builder(0)
        .property(
            "spindle.directory",
            &directory.path().join("domains").display().to_string(),
        )
        // The threads for connections, too.
        .property(
            "spindle.listen",
            &format!("127.{}.{high}.5:7400", low.max(1)),
        )
        .create()
        .map_err(|error| error.to_string())?;
    // Blocked only now: the library's threads have not inherited that.
    change_mask(libc::SIG_BLOCK, &[libc::SIGTERM, libc::SIGUSR1]);
    // SAFETY: the handler is async-signal-safe.
    unsafe { libc::signal(libc::SIGUSR1, handle as *const () as usize) };
    scene::library_threads(&[
        "poll", "control", "dispatch", "wake", "station", "tcp", "accept",
    ])?;
    let ours = scene::other_threads();
    let asynchronous = [
        libc::SIGTERM,
        libc::SIGINT,
        libc::SIGHUP,
        libc::SIGUSR1,
        libc::SIGCHLD,
    ];
    let synchronous = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGABRT,
    ];
    for thread in &ours {
        let blocked = u64::from_str_radix(&thread.status("SigBlk"), 16);
        let blocked = blocked.map_err(|error| error.to_string())?;
        let is_blocked = |signal: &i32| blocked >> (signal - 1) & 1 == 1;
        if !asynchronous.iter().all(is_blocked) || synchronous.iter().any(is_blocked) {
            return Err(format!("{} blocks {blocked:x}", thread.name));
        }
    }
    (0..3).for_each(|_| send_to_myself(Signal::USR1));
    let set = set_of(&[libc::SIGTERM]);
    // SAFETY: the set lives during the call.
    let signals = unsafe { libc::signalfd(-1, &raw const set, 0) };
    send_to_myself(Signal::TERM);
    let mut poll = libc::pollfd {
        fd: signals,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one descriptor, which lives during the call.
    let ready = unsafe { libc::poll(&raw mut poll, 1, PATIENCE.as_millis() as i32) };
    if ready != 1 {
        return Err("SIGTERM is not read from the signalfd".to_owned());
    }
    let handled = HANDLED_BY.load(Ordering::SeqCst);
    if handled != 0 {
        return Err(format!("the handler ran on thread {handled}"));
    }
    change_mask(libc::SIG_UNBLOCK, &[libc::SIGUSR1]);
    let deadline = Instant::now() + PATIENCE;
    while HANDLED_BY.load(Ordering::SeqCst) == 0 && Instant::now() < deadline {
        std::thread::yield_now();
    }
    // SAFETY: touches no memory.
    let me = unsafe { libc::gettid() };
    let handled = HANDLED_BY.load(Ordering::SeqCst);
    if handled != me {
        return Err(format!("the handler ran on {handled}, not on {me}"));
    }
    participant.close().map_err(|error| error.to_string())
}
