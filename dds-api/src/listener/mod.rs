//! Listeners: callbacks on changes of status (DDS 1.4 §2.2.4.4).
//!
//! The participant's dispatch thread calls them, one at a time, without holding a lock: a
//! listener may call any operation, and may block. Until it returns, no other listener of the
//! participant is called; streams, conditions and statuses go on. A status goes to the most
//! specific listener whose mask has its bit: that of the entity, of its publisher or
//! subscriber, of the participant. A mask without a listener swallows the statuses in it. For
//! data, `on_data_on_readers` is called if a listener has DATA_ON_READERS in its mask, and
//! otherwise `on_data_available`; once for what has come to any readers until it is called.
//!
//! A listener is told of a status before a WaitSet returns for the entity's StatusCondition
//! (DDS 1.4 §2.2.4.6). The status is reset before the call, so that the WaitSet returns only if it
//! has changed again, or if a nil listener has swallowed it. ReadConditions look at samples, and
//! do not wait for listeners.
//!
//! A listener that the application wants to keep is an `Arc<Mutex<L>>`, which is a listener too. It
//! is locked while it is called.

mod slot;
mod traits;

pub use slot::SharedListener;
pub(crate) use slot::{ListenerSlot, NewListener};
pub use traits::{
    DataReaderListener, DataWriterListener, DomainParticipantListener, PublisherListener,
    SubscriberListener, TopicListener,
};
