//! Subscribers and readers (DDS 1.4 §2.2.2.5).

mod core;
mod erased;
mod historical_data;
mod info;
mod reader;
mod reader_builder;
mod reader_select;
mod sample;
mod statuses;
mod stream;
mod subscriber;

pub(crate) use self::core::ReaderCore;
pub use self::info::{InstanceState, SampleInfo, SampleState, ViewState};
pub use self::reader::{AnyDataReader, DataReader};
pub use self::reader_builder::DataReaderBuilder;
pub use self::sample::{Sample, Samples, SamplesIter};
pub use self::stream::SampleStream;
pub(crate) use self::subscriber::SubscriberCore;
pub use self::subscriber::{Subscriber, SubscriberBuilder};
