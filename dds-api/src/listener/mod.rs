//! Listeners: callbacks on changes of status (DDS 1.4 §2.2.4.4).
//!
//! The participant's dispatch thread calls them, one at a time, without holding a lock: a
//! listener may call any operation, and may block. Until it returns, no other listener of the
//! participant is called; streams, conditions and statuses go on. A status goes to the most
//! specific listener whose mask has its bit: that of the entity, of its publisher or
//! subscriber, of the participant. A mask without a listener swallows the statuses in it. For
//! data, `on_data_on_readers` is called if a listener has DATA_ON_READERS in its mask, and
//! otherwise `on_data_available`.

mod slot;
mod traits;

pub(crate) use slot::ListenerSlot;
pub use traits::{
    DataReaderListener, DataWriterListener, DomainParticipantListener, PublisherListener,
    SubscriberListener, TopicListener,
};
