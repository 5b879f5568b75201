//! A participant as the main process has it: started, asked, and ended with it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use spindle_dds_children::{describe_failure, this_program};

use super::injector::{Injector, Target};
use super::messages::{Job, Reply, Request};
use crate::Failure;

/// A process with a participant. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    requests: UnixStream,
    replies: BufReader<UnixStream>,
    /// Where its standard error goes.
    errors: PathBuf,
    injector: Option<Injector>,
}

/// Why there is no reply.
#[derive(Debug)]
pub(super) enum NoReply {
    /// None came until the deadline.
    Late,
    /// The process has ended, in this way.
    Ended(String),
}

impl Process {
    /// Starts it. Its calls are answered from now on if the job says that they are reported.
    pub(super) fn start(
        job: &Job,
        below: &Path,
        target: Option<Target>,
        lasting: Duration,
    ) -> Result<Self, Failure> {
        let errors = below.join(format!("errors-{}", job.number));
        let (requests, theirs) = UnixStream::pair()?;
        let arguments = vec!["participant".into(), serde_json::to_string(job)?.into()];
        let child = this_program(arguments)?
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(File::create(&errors)?)
            .spawn()?;
        let replies = BufReader::new(requests.try_clone()?);
        let mut process = Self {
            child,
            requests,
            replies,
            errors,
            injector: None,
        };
        match (process.receive_listener()?, job.reported) {
            (Some(listener), true) => {
                let logs_only = job.log.is_some();
                process.injector = Some(Injector::start(listener, logs_only, target, lasting));
            }
            (None, false) => {}
            _ => {
                let text = format!("the participant did not start: {}", process.last_words());
                return Err(Failure::Run(text));
            }
        }
        Ok(process)
    }

    /// The first byte that it sends, with the listener if its calls are reported.
    fn receive_listener(&self) -> io::Result<Option<OwnedFd>> {
        self.requests.set_read_timeout(Some(START_WITHIN))?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let bytes = &mut [IoSliceMut::new(&mut byte)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        rustix::net::recvmsg(&self.requests, bytes, &mut control, flags)?;
        let descriptors = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut sent) => sent.next(),
            _ => None,
        });
        Ok(descriptors)
    }

    pub(super) fn injector(&self) -> Option<&Injector> {
        self.injector.as_ref()
    }

    /// Asks, and waits for the reply until the deadline.
    pub(super) fn ask(
        &mut self,
        request: Request,
        deadline: Instant,
    ) -> Result<Result<Reply, NoReply>, Failure> {
        if self.send(request).is_err() {
            return Ok(Err(NoReply::Ended(self.end(deadline)?)));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        self.requests
            .set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let mut line = String::new();
        match self.replies.read_line(&mut line) {
            Ok(0) => Ok(Err(NoReply::Ended(self.end(deadline)?))),
            Ok(_) => Ok(Ok(serde_json::from_str(&line)?)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                Ok(Err(NoReply::Ended(self.end(deadline)?)))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Err(NoReply::Late)),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&mut self, request: Request) -> io::Result<()> {
        let mut line = serde_json::to_vec(&request)?;
        line.push(b'\n');
        self.requests.write_all(&line)
    }

    /// Tells it to end: how it failed to, if it did.
    pub(super) fn exit(&mut self, deadline: Instant) -> Result<Option<NoReply>, Failure> {
        // If it has ended already, its status says how.
        let _ = self.send(Request::Exit);
        loop {
            if let Some(status) = self.child.try_wait()? {
                let described = describe_failure(status);
                let failure = described.map(|how| format!("{how}: {}", self.last_words()));
                return Ok(failure.map(NoReply::Ended));
            }
            if Instant::now() > deadline {
                return Ok(Some(NoReply::Late));
            }
            std::thread::sleep(POLL_EVERY);
        }
    }

    /// How it has ended without being told to.
    fn end(&mut self, deadline: Instant) -> Result<String, Failure> {
        Ok(match self.exit(deadline)? {
            Some(NoReply::Ended(how)) => how,
            Some(NoReply::Late) => "has closed its input, and does not end".to_owned(),
            None => format!("has ended: {}", self.last_words()),
        })
    }

    /// What it has printed on its standard error, in one line.
    pub(super) fn last_words(&self) -> String {
        let text = std::fs::read(&self.errors).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        text.lines().collect::<Vec<_>>().join(" / ")
    }

    /// What its open descriptors refer to.
    pub(super) fn descriptors(&self) -> io::Result<Vec<String>> {
        let directory = PathBuf::from(format!("/proc/{}/fd", self.child.id()));
        let entries = std::fs::read_dir(directory)?.flatten();
        let link = |path: PathBuf| Some(std::fs::read_link(path).ok()?.display().to_string());
        Ok(entries.filter_map(|entry| link(entry.path())).collect())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // With the process its calls have ended.
        if let Some(injector) = &mut self.injector {
            let _ = injector.join();
        }
    }
}

const START_WITHIN: Duration = Duration::from_secs(30);
const POLL_EVERY: Duration = Duration::from_millis(1);
