//! What writers and readers have in common, and publishers and subscribers (DDS 1.4
//! §2.2.2.4, §2.2.2.5).
//!
//! ```text
//!   Side         WriterSide                       ReaderSide
//!   FactoryCore  Publisher  (PublisherCore)       Subscriber (SubscriberCore)
//!   EndpointCore DataWriter (WriterCore)          DataReader (ReaderCore)
//! ```
//!
//! The cores are generic over a [`Side`] and know no topic type. The public handles add the
//! type, and the names that the standard gives to each side; the macros in [`operations`]
//! write what both sides name alike.

mod core;
mod factory;
mod listener;
mod operations;
mod side;

pub(crate) use self::core::EndpointCore;
pub(crate) use factory::FactoryCore;
pub(crate) use listener::ErasedListener;
pub(crate) use operations::{endpoint_operations, factory_builder, factory_operations};
pub(crate) use side::{EndpointQos, Side};
