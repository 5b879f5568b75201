//! Listeners: callbacks on changes of status (DDS 1.4 §2.2.4.4).
//!
//! They run on the participant's dispatch thread, one at a time, and hold no
//! lock meanwhile: they may call any operation and block as long as they like;
//! only other listeners of the same participant wait for them, and neither its
//! streams, its conditions nor its statuses. A status goes
//! to the most specific listener whose mask has its bit: that of the entity,
//! of its publisher or subscriber, of the participant. A mask without a
//! listener swallows the statuses in it. For data, `on_data_on_readers` comes
//! first; only if nobody has it, `on_data_available`.

mod slot;
mod traits;

pub(crate) use slot::ListenerSlot;
pub use traits::{
    DataReaderListener, DataWriterListener, DomainParticipantListener, PublisherListener,
    SubscriberListener, TopicListener,
};
