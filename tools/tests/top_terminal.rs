//! `spindle top` on a terminal: keys, a new size, and that the terminal is given back.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

/// A terminal, and `spindle top` on it.
struct Session {
    child: Child,
    keys: File,
    /// The other end, as programs have it.
    terminal: OwnedFd,
    /// What the terminal was like before.
    before: Termios,
    output: Arc<Mutex<Vec<u8>>>,
}

impl Session {
    fn start(directory: &Path) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let controller = openpt(flags).expect("a pseudoterminal");
        grantpt(&controller).expect("granted");
        unlockpt(&controller).expect("unlocked");
        let terminal = ioctl_tiocgptpeer(&controller, flags).expect("its other end");
        resize(&controller, (80, 24));
        let before = tcgetattr(&terminal).expect("a terminal");
        let end = || terminal.try_clone().expect("a descriptor");
        // With it as the controlling terminal: a new size is told by a signal.
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(env!("CARGO_BIN_EXE_spindle"))
            .args(["top", "--interval", "0.05", "--directory"])
            .arg(directory)
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("setsid starts");
        let keys = File::from(controller);
        let output = Arc::new(Mutex::new(Vec::new()));
        let (mut from, to) = (keys.try_clone().expect("a descriptor"), output.clone());
        thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(len @ 1..) = from.read(&mut part) {
                to.lock().expect("no panic").extend(&part[..len]);
            }
        });
        Self {
            child,
            keys,
            terminal,
            before,
            output,
        }
    }

    fn output(&self) -> String {
        let output = self.output.lock().expect("no panic");
        String::from_utf8_lossy(&output).into_owned()
    }

    /// Only what changes is drawn anew: a word with others before it may be drawn in parts.
    fn until(&self, what: &str) {
        wait_until(
            || self.output().contains(what).then_some(()),
            || self.output(),
        );
    }

    fn local_modes(&self) -> LocalModes {
        tcgetattr(&self.terminal).expect("a terminal").local_modes
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("a terminal");
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// It has ended, and the terminal is as it was.
    #[track_caller]
    fn ends(mut self) {
        let output = self.output.clone();
        let said = || String::from_utf8_lossy(&output.lock().expect("no panic")).into_owned();
        let ended: ExitStatus = wait_until(|| self.child.try_wait().expect("a child"), said);
        assert!(ended.success(), "{ended}: {}", self.output());
        self.until("\u{1b}[?1049l");
        self.until("\u{1b}[?25h");
        let now = tcgetattr(&self.terminal).expect("a terminal");
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(now.input_modes, self.before.input_modes);
        assert_eq!(now.output_modes, self.before.output_modes);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(terminal: &OwnedFd, (columns, rows): (u16, u16)) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).expect("a new size");
}

fn wait_until<R>(mut condition: impl FnMut() -> Option<R>, said: impl Fn() -> String) -> R {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "never; on the terminal: {:?}",
            said()
        );
        thread::sleep(Duration::from_millis(2));
    }
}

/// `spindle top` of a domain without participants, once it is drawn.
fn shown(directory: &Path) -> Session {
    let session = Session::start(directory);
    session.until("participants");
    assert!(!session.local_modes().contains(LocalModes::ICANON));
    session
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("domains");
    for keys in ["q", "\u{3}", "?q"] {
        let mut session = shown(&directory);
        session.press(keys);
        session.ends();
    }
    for signal in ["-TERM", "-INT", "-HUP"] {
        let session = shown(&directory);
        session.signal(signal);
        session.ends();
    }
}

#[test]
fn a_new_size_and_keys_draw_anew() {
    let home = tempfile::tempdir().expect("a directory");
    let mut session = shown(&home.path().join("domains"));
    // The last line of a frame says what is shown.
    session.until("\u{1b}[24;1H");
    resize(&session.terminal, (100, 30));
    session.until("\u{1b}[30;1H");
    session.press("8");
    session.until("Problems:");
    session.press("?");
    session.until("Help:");
    session.press("qq");
    session.ends();
}
