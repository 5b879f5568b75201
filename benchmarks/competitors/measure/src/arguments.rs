//! The command line.

use clap::{Parser, ValueEnum};

/// What `spindle bench --peers` tells a program. One process for each role.
#[derive(Debug, Clone, Parser)]
pub struct Arguments {
    /// What this process does.
    #[arg(value_enum)]
    pub role: Role,
    /// Bytes of payload in a sample.
    #[arg(long, default_value_t = 128)]
    pub size: usize,
    /// How long to send.
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// How much to send, instead.
    #[arg(long)]
    pub samples: Option<u64>,
    /// Samples a second; as many as there is room for if not given.
    #[arg(long)]
    pub rate: Option<f64>,
    /// How many subscribers there are.
    #[arg(long, default_value_t = 1)]
    pub readers: u32,
    /// What a reader does with a sample, and a writer.
    #[arg(long, value_enum, default_value_t = Read::Touch)]
    pub read: Read,
    /// How a reader waits.
    #[arg(long, value_enum, default_value_t = Wait::Poll)]
    pub wait: Wait,
    /// Tells runs apart that take place at the same time: letters and digits.
    #[arg(long, default_value = "0")]
    pub session: String,
}

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Sends.
    Publisher,
    /// Receives.
    Subscriber,
    /// Sends and waits for each echo.
    Ping,
    /// Echoes.
    Pong,
}

/// What is done with the bytes of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Read {
    /// The first and the last are written, and read.
    Touch,
    /// All are written, and summed.
    Sum,
}

/// How a reader waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Wait {
    /// It looks again and again, and yields now and then.
    Poll,
    /// It sleeps until it is woken.
    Block,
}
