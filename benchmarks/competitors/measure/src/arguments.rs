//! The command line.

use clap::{Parser, ValueEnum};

/// The arguments that `spindle bench --peers` passes. Each role is a process.
#[derive(Debug, Clone, Parser)]
pub struct Arguments {
    /// The role of this process.
    #[arg(value_enum)]
    pub role: Role,
    /// Bytes of payload in a sample.
    #[arg(long, default_value_t = 128)]
    pub size: usize,
    /// How long samples are sent, in seconds.
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// Number of samples to send, instead of --seconds.
    #[arg(long)]
    pub samples: Option<u64>,
    /// Samples per second [default: as many as there is room for].
    #[arg(long)]
    pub rate: Option<f64>,
    /// Number of subscribers.
    #[arg(long, default_value_t = 1)]
    pub readers: u32,
    /// Which bytes of a sample are written and read.
    #[arg(long, value_enum, default_value_t = Read::Touch)]
    pub read: Read,
    /// How a reader waits.
    #[arg(long, value_enum, default_value_t = Wait::Poll)]
    pub wait: Wait,
    /// Name of the run, unique among runs at the same time: letters and digits.
    #[arg(long, default_value = "0")]
    pub session: String,
}

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Sends samples.
    Publisher,
    /// Receives samples.
    Subscriber,
    /// Sends samples, and waits for the echo of each.
    Ping,
    /// Sends each sample back.
    Pong,
}

/// Which bytes of a sample are written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Read {
    /// The first and the last byte.
    Touch,
    /// All bytes: written, and summed.
    Sum,
}

/// How a reader waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Wait {
    /// It polls; it spins first, then yields.
    Poll,
    /// It sleeps until woken.
    Block,
}
