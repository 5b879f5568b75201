//! Stations in a network: several in one process over 127.0.0.1, each on a host of its own,
//! represented by a directory; and misbehaving peers, represented by a socket.

mod calling;
mod encryption;
#[path = "../fork/mod.rs"]
mod fork;
mod group;
mod messages;
#[path = "../namespaces/mod.rs"]
mod namespaces;
mod processes;
mod raw;
mod records;
mod segments;
mod silence;
mod strangers;
