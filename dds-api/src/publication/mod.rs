//! Publishers and writers (DDS 1.4 §2.2.2.4).

mod acknowledgments;
mod core;
mod erased;
mod kept;
mod limits;
mod loan;
mod loan_pool;
mod loan_slot;
mod permit;
mod publisher;
mod receipt;
mod registered_instances;
mod settings;
mod statuses;
mod unsent;
mod writer;
mod writer_builder;
mod writer_futures;
mod writer_history;
mod writer_instances;

pub(crate) use self::core::WriterCore;
pub use self::loan::Loan;
pub(crate) use self::publisher::PublisherCore;
pub use self::publisher::{Publisher, PublisherBuilder};
pub use self::receipt::Receipt;
pub use self::writer::{AnyDataWriter, DataWriter};
pub use self::writer_builder::DataWriterBuilder;
