//! One run: a command of `spindle perf`.

use std::process::Command;
use std::time::Duration;

use crate::model::Senders;
use spindle_dds::properties::engine_switches;

use super::outcome::{Outcome, Rounds};
use crate::plan::Work;
use crate::systems::Stage;
use spindle_dds_tools::harness::cache_line::line_ns;
use spindle_dds_tools::harness::load::Moment;
use spindle_dds_tools::harness::processes;

/// A run: a command of `spindle perf throughput`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) participants: Participants,
    /// Bytes of payload in a message.
    pub(super) size: u32,
    /// Most messages in flight of a sender.
    pub(super) window: u32,
    /// Messages that each sender sends.
    pub(super) messages: u32,
    /// Engine switches that are off.
    pub(super) off: Vec<&'static str>,
    /// Topics in which each member sends.
    pub(super) topics: usize,
    /// Additional idle topics.
    pub(super) idle_topics: usize,
    pub(super) last: Last,
    /// Length of each sleep of an additional thread that only sleeps, if there is one.
    pub(super) beside: Option<&'static str>,
    pub(super) copies: bool,
    pub(super) unordered: bool,
    /// DURABILITY, unless it is VOLATILE.
    pub(super) durability: Option<&'static str>,
    /// Whether messages carry the time of sending.
    pub(super) stamped: bool,
    pub(super) upcall: Upcall,
    /// Time to wait before the first message.
    pub(super) settle: &'static str,
    /// Time for which members stay idle afterwards.
    pub(super) still: Option<&'static str>,
}

/// The participants of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Participants {
    /// Number of members, which all read, and number of those that send.
    Members(usize, usize),
    /// A writer, and a reader with a listener.
    Pair,
}

/// The behaviour of the last sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Prompt,
    /// It waits after each message in a loop that yields the processor.
    Delayed(&'static str),
    /// It sleeps after each message.
    Sleeps(&'static str),
    /// It sends nothing for this long at most.
    Silent(&'static str),
}

/// Duration of the listener's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upcall {
    No,
    /// This time for each message.
    Each(&'static str),
    /// This time for each call.
    Once(&'static str),
}

impl Run {
    /// The paper's usual experiment: all members send messages of 10 KB, a window of about 100.
    pub(super) fn new(members: usize, stage: Stage, messages: u32) -> Self {
        Self {
            participants: Participants::Members(members, members),
            size: 10_240,
            // Rings have a power of two of messages.
            window: 128,
            messages,
            off: off(stage),
            topics: 1,
            idle_topics: 0,
            last: Last::Prompt,
            beside: None,
            copies: false,
            unordered: false,
            durability: None,
            stamped: false,
            upcall: Upcall::No,
            settle: SETTLE,
            still: None,
        }
    }

    pub(super) fn senders(mut self, senders: Senders) -> Self {
        if let Participants::Members(members, all) = &mut self.participants {
            *all = senders.of(*members);
        }
        self
    }

    /// Adds idle subgroups. The setup takes longer, and without summary polling so does each
    /// message, so fewer are sent.
    pub(super) fn idle_topics(self, idle_topics: usize) -> Self {
        let part = match self.off.contains(&"summary_polling") {
            true => 1 + idle_topics as u32 / 8,
            false => 1,
        };
        Self {
            messages: (self.messages / part).max(100),
            idle_topics,
            settle: if idle_topics > 0 {
                SETTLE_MANY
            } else {
                self.settle
            },
            ..self
        }
    }

    /// Switches off one more optimisation.
    pub(super) fn without(mut self, switch: &'static str) -> Self {
        if !self.off.contains(&switch) {
            self.off.push(switch);
        }
        self
    }

    /// The arguments of `spindle perf throughput`.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut add = |word: &str, value: &dyn ToString| {
            words.extend([word.to_owned(), value.to_string()]);
        };
        if let Participants::Members(members, senders) = self.participants {
            add("--members", &members);
            if senders < members {
                add("--senders", &senders);
            }
        }
        add("--size", &self.size);
        add("--ring-messages", &self.window);
        add("--samples", &self.messages);
        add("--settle", &self.settle);
        if !self.off.is_empty() {
            add("--without", &self.off.join(","));
        }
        if self.topics > 1 {
            add("--topics", &self.topics);
        }
        if self.idle_topics > 0 {
            add("--idle-topics", &self.idle_topics);
        }
        match self.last {
            Last::Prompt => {}
            Last::Delayed(time) => add("--delay-one", &time),
            Last::Sleeps(time) => add("--sleep-one", &time),
            Last::Silent(time) => add("--silent-one", &time),
        }
        if let Some(time) = self.beside {
            add("--beside", &time);
        }
        if self.unordered {
            add("--level", &"unordered");
        }
        if let Some(durability) = self.durability {
            add("--durability", &durability);
        }
        match self.upcall {
            Upcall::No => {}
            Upcall::Each(time) | Upcall::Once(time) => add("--upcall", &time),
        }
        if let Some(time) = self.still {
            add("--still", &time);
        }
        let flags = [
            (self.participants == Participants::Pair, "--listener"),
            (self.copies, "--copy"),
            (self.stamped, "--stamp"),
            (matches!(self.upcall, Upcall::Once(_)), "--upcall-once"),
        ];
        let flags = flags.iter().filter(|(is, _)| *is);
        words.extend(flags.map(|(_, flag)| (*flag).to_owned()));
        words
    }

    /// The command as a user types it.
    pub(super) fn command(&self) -> String {
        format!("spindle perf throughput {}", self.arguments().join(" "))
    }

    /// Runs the command once.
    pub(super) fn once(&self) -> Result<Outcome, String> {
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(this);
        command
            .args([super::COMMAND, "throughput"])
            .args(self.arguments())
            .args(["--json", "--timeout", &LIMIT.as_secs().to_string()]);
        let line_before = line_ns();
        let before = Moment::now().map_err(|error| error.to_string())?;
        let said = processes::run(vec![command], LIMIT + GRACE)?;
        let after = Moment::now().map_err(|error| error.to_string())?;
        let line_ns = line_before.zip(line_ns());
        let said = said.first().map_or("", String::as_str);
        Outcome::of(said, after.since(&before), line_ns)
    }
}

impl Work for Run {
    type Outcome = Rounds;
}

/// Names of the switches that are off in a stage.
fn off(stage: Stage) -> Vec<&'static str> {
    let mut off: Vec<&'static str> = engine_switches().collect();
    off.retain(|name| !stage.has(name));
    off
}

const SETTLE: &str = "200ms";
const SETTLE_MANY: &str = "1s";
/// Longer than any run takes.
const LIMIT: Duration = Duration::from_secs(60);
/// Time for `spindle perf` to end by itself.
const GRACE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_a_command() {
        let check = |run: Run, command: &str| assert_eq!(run.command(), command);
        check(
            Run::new(4, Stage::Bounded, 20_000),
            "spindle perf throughput --members 4 --size 10240 --ring-messages 128 --samples 20000 \
             --settle 200ms",
        );
        let run = Run {
            last: Last::Delayed("100us"),
            copies: true,
            durability: Some("transient"),
            still: Some("5s"),
            ..Run::new(3, Stage::Bounded, 1000)
        };
        check(
            run.senders(Senders::Half).without("null_sends"),
            "spindle perf throughput --members 3 --senders 1 --size 10240 --ring-messages 128 \
             --samples 1000 --settle 200ms --without null_sends --delay-one 100us \
             --durability transient --still 5s \
             --copy",
        );
    }

    #[test]
    fn switches_that_a_stage_lacks_are_off() {
        let mut of_baseline = off(Stage::Baseline);
        of_baseline.sort_unstable();
        let named = [
            "batched_upcalls",
            "bounded_deliveries",
            "delivery_batching",
            "null_sends",
            "receive_batching",
            "send_batching",
            "summary_polling",
        ];
        assert_eq!(of_baseline, named);
        assert!(off(Stage::Bounded).is_empty());
        let of_batching = off(Stage::Batching);
        assert!(of_batching.contains(&"null_sends") && !of_batching.contains(&"send_batching"));
    }
}
