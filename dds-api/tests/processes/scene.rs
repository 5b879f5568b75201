//! A test in a process of its own: this test binary, which runs one of its tests. What it forks
//! has one thread, and shares no lock with other tests.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SCENE: &str = "SPINDLE_TEST_SCENE";

/// Runs a test of this binary, which calls [`current`], in a process of its own.
pub(crate) fn play(test: &str, scene: &str) {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture"])
        .env(SCENE, scene)
        .stdin(Stdio::null())
        .output()
        .expect("a process");
    let [out, error] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{scene}: {:?}\n{out}\n{error}",
        output.status
    );
}

/// The scene that this process is to play, if it was started for one.
pub(crate) fn current() -> Option<String> {
    std::env::var(SCENE).ok()
}

/// A process ends by a signal after this many seconds, and its test fails.
const LIVES_FOR: u32 = 120;

/// A child of this process, which runs no other program.
pub(crate) struct Child(i32);

impl Child {
    /// Forks this process: the child runs this, and ends. It succeeds if this returns `Ok`.
    pub(crate) fn fork(run: impl FnOnce() -> Result<(), String>) -> Self {
        // SAFETY: only this thread continues in the child, which ends here.
        let child = unsafe { libc::fork() };
        if child != 0 {
            assert!(child > 0, "it cannot fork");
            return Self(child);
        }
        // SAFETY: touches no memory.
        unsafe { libc::alarm(LIVES_FOR) };
        let status = match run() {
            Ok(()) => 0,
            Err(what) => {
                eprintln!("in the child: {what}");
                1
            }
        };
        // SAFETY: ends the process.
        unsafe { libc::_exit(status) }
    }

    /// Whether it has ended; it must have succeeded then.
    pub(crate) fn has_ended(&self) -> bool {
        self.wait(libc::WNOHANG)
    }

    /// Waits until it has ended, and checks that it has succeeded.
    pub(crate) fn join(self) {
        assert!(self.wait(0));
    }

    fn wait(&self, options: i32) -> bool {
        let mut status = 0;
        // SAFETY: writes the status, which lives during the call.
        let waited = unsafe { libc::waitpid(self.0, &raw mut status, options) };
        assert!(waited >= 0, "it is no child");
        assert!(
            waited == 0 || status == 0,
            "the child ended with {status:#x}"
        );
        waited != 0
    }
}

/// A thread of this process.
pub(crate) struct ThreadStatus {
    /// As Linux shows it: 15 bytes.
    pub(crate) name: String,
    /// What `/proc` says of it.
    status: String,
    stat: String,
}

impl ThreadStatus {
    /// A field of its status.
    pub(crate) fn status(&self, field: &str) -> String {
        let line = self
            .status
            .lines()
            .find_map(|line| line.strip_prefix(field));
        let value = line.and_then(|line| line.strip_prefix(':'));
        value.expect("a field").trim().to_owned()
    }

    /// Its nice value.
    pub(crate) fn nice(&self) -> i32 {
        let (_, fields) = self.stat.rsplit_once(')').expect("a name");
        // The 19th field of proc_pid_stat(5); the state is the 3rd.
        let nice = fields.split_ascii_whitespace().nth(16).expect("a field");
        nice.parse().expect("a number")
    }
}

/// The other threads of this process, which are the library's where a program has one of its own.
/// A thread that has just begun may not have its name yet.
pub(crate) fn other_threads() -> Vec<ThreadStatus> {
    let me = rustix::thread::gettid().as_raw_nonzero().to_string();
    let tasks = fs::read_dir("/proc/self/task").expect("threads").flatten();
    let read = |entry: fs::DirEntry| {
        // A thread may end meanwhile.
        let file = |name| fs::read_to_string(entry.path().join(name)).ok();
        Some(ThreadStatus {
            name: file("comm")?.trim_end().to_owned(),
            status: file("status")?,
            stat: file("stat")?,
        })
    };
    let others = tasks.filter(|entry| *entry.file_name() != *me);
    others.filter_map(read).collect()
}

/// The library's threads with these names, in this order, as soon as all are there.
pub(crate) fn library_threads(names: &[&str]) -> Result<Vec<ThreadStatus>, String> {
    let deadline = Instant::now() + Duration::from_secs(u64::from(LIVES_FOR)) / 2;
    loop {
        let mut all = other_threads();
        let mut take = |name: &&str| {
            let name: String = format!("spindle-{name}").chars().take(15).collect();
            let at = all.iter().position(|thread| thread.name == name)?;
            Some(all.swap_remove(at))
        };
        let found: Option<Vec<_>> = names.iter().map(&mut take).collect();
        match found {
            Some(found) => return Ok(found),
            None if Instant::now() > deadline => {
                let all = other_threads();
                let names: Vec<_> = all.iter().map(|thread| &thread.name).collect();
                return Err(format!("there are only {names:?}"));
            }
            None => std::thread::yield_now(),
        }
    }
}
