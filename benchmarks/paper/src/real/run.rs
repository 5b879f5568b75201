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

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) who: Who,
    /// Bytes of a message.
    pub(super) size: u32,
    /// Messages of a sender that may be in flight.
    pub(super) window: u32,
    /// Messages of a sender.
    pub(super) messages: u32,
    /// Switches that are off.
    pub(super) off: Vec<&'static str>,
    /// Topics in which each member sends.
    pub(super) topics: usize,
    /// Topics beside them in which nothing is sent.
    pub(super) idle_topics: usize,
    pub(super) last: Last,
    /// For how long somebody sleeps, again and again, who does nothing else.
    pub(super) beside: Option<&'static str>,
    pub(super) copies: bool,
    pub(super) unordered: bool,
    /// Messages are timed.
    pub(super) stamped: bool,
    pub(super) upcall: Upcall,
    /// How long nothing is sent before.
    pub(super) settle: &'static str,
    /// How long members stay afterwards.
    pub(super) still: Option<&'static str>,
}

/// Who takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// So many members that read, of which so many send.
    Members(usize, usize),
    /// A writer, and a reader with a listener.
    Pair,
}

/// What the last of the senders does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Prompt,
    /// It waits after each message, and gives way to others.
    Delayed(&'static str),
    /// It sleeps after each message.
    Sleeps(&'static str),
    /// It sends nothing, for so long at most.
    Silent(&'static str),
}

/// How long listeners take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upcall {
    No,
    /// For each message.
    Each(&'static str),
    /// For each call.
    Once(&'static str),
}

impl Run {
    /// The paper's usual one: all send messages of 10 KB, a window of 100.
    pub(super) fn new(members: usize, stage: Stage, messages: u32) -> Self {
        Self {
            who: Who::Members(members, members),
            size: 10_240,
            // A power of two: what rings are made of.
            window: 128,
            messages,
            off: off(stage),
            topics: 1,
            idle_topics: 0,
            last: Last::Prompt,
            beside: None,
            copies: false,
            unordered: false,
            stamped: false,
            upcall: Upcall::No,
            settle: SETTLE,
            still: None,
        }
    }

    pub(super) fn senders(mut self, senders: Senders) -> Self {
        if let Who::Members(members, all) = &mut self.who {
            *all = senders.of(*members);
        }
        self
    }

    /// Beside so many subgroups in which nothing is sent: there is more to set up, and, without
    /// summary polling, to look at for each message, of which fewer are sent then.
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

    /// Without one more switch.
    pub(super) fn without(mut self, switch: &'static str) -> Self {
        if !self.off.contains(&switch) {
            self.off.push(switch);
        }
        self
    }

    /// What is typed behind `spindle perf throughput`.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut add = |word: &str, value: &dyn ToString| {
            words.extend([word.to_owned(), value.to_string()]);
        };
        if let Who::Members(members, senders) = self.who {
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
        match self.upcall {
            Upcall::No => {}
            Upcall::Each(time) | Upcall::Once(time) => add("--upcall", &time),
        }
        if let Some(time) = self.still {
            add("--still", &time);
        }
        let flags = [
            (self.who == Who::Pair, "--listener"),
            (self.copies, "--copy"),
            (self.stamped, "--stamp"),
            (matches!(self.upcall, Upcall::Once(_)), "--upcall-once"),
        ];
        let flags = flags.iter().filter(|(is, _)| *is);
        words.extend(flags.map(|(_, flag)| (*flag).to_owned()));
        words
    }

    /// As it would be typed.
    pub(super) fn command(&self) -> String {
        format!("spindle perf throughput {}", self.arguments().join(" "))
    }

    /// Runs it once.
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

/// Names of the switches that a stage does not have.
fn off(stage: Stage) -> Vec<&'static str> {
    let mut off: Vec<&'static str> = engine_switches().collect();
    off.retain(|name| !stage.has(name));
    off
}

const SETTLE: &str = "200ms";
const SETTLE_MANY: &str = "1s";
/// Longer than any run takes here.
const LIMIT: Duration = Duration::from_secs(60);
/// `spindle perf` ends by itself.
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
            still: Some("5s"),
            ..Run::new(3, Stage::Bounded, 1000)
        };
        check(
            run.senders(Senders::Half).without("null_sends"),
            "spindle perf throughput --members 3 --senders 1 --size 10240 --ring-messages 128 \
             --samples 1000 --settle 200ms --without null_sends --delay-one 100us --still 5s --copy",
        );
    }

    #[test]
    fn stages_switch_off_what_they_have_not() {
        let all: Vec<&str> = engine_switches().collect();
        assert_eq!(off(Stage::Baseline), all);
        assert!(off(Stage::Bounded).is_empty());
        let of_batching = off(Stage::Batching);
        assert!(of_batching.contains(&"null_sends") && !of_batching.contains(&"send_batching"));
    }
}
