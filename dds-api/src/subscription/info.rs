//! What a reader returns of a sample beside its data.

use spindle_dds_idl_runtime::Encapsulation;

use crate::handle::InstanceHandle;

/// Whether a sample was read before (DDS 1.4 §2.2.2.5.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SampleState {
    /// Read before.
    Read = 1,
    /// Not read before.
    NotRead = 2,
}

/// Whether samples of an instance were taken or read since it became alive (DDS 1.4
/// §2.2.2.5.1.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ViewState {
    /// None was.
    New = 1,
    /// Some were.
    NotNew = 2,
}

/// Whether an instance is alive (DDS 1.4 §2.2.2.5.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum InstanceState {
    /// It has a writer and was not disposed of.
    Alive = 1,
    /// A writer disposed of it.
    NotAliveDisposed = 2,
    /// It lost its last writer.
    NotAliveNoWriters = 4,
}

/// Describes a sample (DDS 1.4 §2.2.2.5.5, `SampleInfo`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleInfo {
    /// Whether this sample was read before.
    pub sample_state: SampleState,
    /// Whether samples of the instance were taken or read before.
    pub view_state: ViewState,
    /// The state of the instance when the sample was taken or read.
    pub instance_state: InstanceState,
    /// How often the instance had come back after disposal when this sample arrived.
    pub disposed_generation_count: i32,
    /// How often it had come back after losing its writers when this sample arrived.
    pub no_writers_generation_count: i32,
    /// How many samples of the instance follow in the returned collection.
    pub sample_rank: i32,
    /// Generations between this sample and the instance's newest in the collection.
    pub generation_rank: i32,
    /// Generations between this sample and the instance's newest in the reader.
    pub absolute_generation_rank: i32,
    /// When it was written: nanoseconds since 1970.
    pub source_timestamp: i64,
    /// Its instance.
    pub instance_handle: InstanceHandle,
    /// Its writer.
    pub publication_handle: InstanceHandle,
    /// Whether there is data; else only the state of the instance has changed.
    pub valid_data: bool,
    pub(crate) position: u64,
    pub(crate) writer_sequence: u64,
    pub(crate) encapsulation: Encapsulation,
}

impl SampleInfo {
    /// The position of the sample: for a RELIABLE writer, in the total order of the subgroup,
    /// which is the same at every reader; for a BEST_EFFORT writer, the index among the
    /// messages of its participant. An extension of Spindle.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The sequence number of the sample at its writer, from 1. Samples that a BEST_EFFORT
    /// writer drops take a number too. An extension of Spindle.
    pub const fn writer_sequence(&self) -> u64 {
        self.writer_sequence
    }

    /// How the data is encoded.
    pub const fn encapsulation(&self) -> Encapsulation {
        self.encapsulation
    }
}
