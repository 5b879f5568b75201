//! The driver: threads, waiting and wake-ups around the engine.
//!
//! ```text
//!   writer thread    WriterPort::claim .. commit -> publish     waits in SendWaiters
//!   polling thread   Session::step -> Sink -> ReaderPort -> cache
//!                    spins shortly, yields, sleeps in the fabric
//!   control thread   from view to view; lets newcomers in       woken by ControlQueue
//!   dispatch thread  statuses of entities -> listeners          woken by Notifier; where they wait
//!   waking thread    data -> streams                            for data, as readers do
//!   reader thread    ReaderPort::select; in a WaitSet it steps the engine and sleeps in the
//!                    fabric, as a follower of the polling thread; if it polls, it steps
//! ```
//!
//! Any of these threads may step the engine. A thread that steps never waits: the sink pushes
//! onto queues that have room for all that can be in flight, only tries locks, and wakes threads.
//!
//! - `send`: a writer's access to the engine. `receive`: from the engine to a reader's cache.
//! - `waiting`: how threads wait, and are woken. `threads`: what the four threads do.
//! - `endpoints`: the endpoints of this participant, and what a view means to them.

mod endpoints;
mod group_status;
mod logs;
mod receive;
mod send;
mod session;
pub(crate) mod threads;
mod waiting;

pub(crate) use endpoints::announced_matches::AnnouncementReader;
pub(crate) use endpoints::local_endpoints::{LocalEndpoint, LocalEndpoints};
pub(crate) use group_status::{CancelToken, GroupStatus};
pub(crate) use logs::{TopicLogs, degree_of_delivery, name_troubles};
pub(crate) use receive::payload::{Item, Payload};
pub(crate) use receive::reader_port::ReaderPort;
pub(crate) use receive::reader_state::logged::LoggedAt;
pub(crate) use receive::reader_state::{Access, ReaderStatuses};
pub(crate) use receive::rekey::{Rekey, rekey, rekey_dynamic};
pub(crate) use send::acceptance::Acceptor;
pub(crate) use send::waiters::{AcceptanceWait, SendWaiters, SubgroupObserver, WaitRecord};
pub(crate) use send::writer_claim::WriterClaim;
pub(crate) use send::writer_logs::WriterLogs;
pub(crate) use send::writer_port::{Obstacle, SendPosition, SubgroupWait, WriterPort};
pub(crate) use send::writer_return::{Before, SentBefore};
pub(crate) use session::{Lasting, Session, SessionStart};
pub(crate) use threads::control::ControlThread;
pub(crate) use threads::control_queue::ControlQueue;
pub(crate) use threads::dispatch::Dispatcher;
pub(crate) use threads::memory_watch::MemoryWatch;
pub(crate) use threads::spawn::Threads;
pub(crate) use threads::waking::StreamWaker;
pub(crate) use waiting::future_wakers::{FutureWaker, WaitingFuture};
pub(crate) use waiting::history_waiters::HistoryWait;
pub(crate) use waiting::notifier::Notifier;
pub(crate) use waiting::poll_on_read::calls_back;
pub(crate) use waiting::stream_wakers::StreamWakers;
