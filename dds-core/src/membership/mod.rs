//! Group membership: the view protocol, without blocking and without I/O.
//!
//! All participants of a domain agree on a sequence of views. A view ends by one proposal:
//! members that leave or are expelled, members that join, endpoints that change, and the trim
//! of each subgroup whose epoch ends:
//!
//! ```text
//!   suspicion ---------------------------+
//!   request --> intent --> prepared -----+--> wedge --> report (counts) --> proposal
//!                  ^--- refused <-+                                            |
//!   next view <-- finish (deliver up to the trim) <-- commit <-- echo by all <-+
//! ```
//!
//! What a view needs is had before it is agreed: a request for which a member lacks something is
//! refused, and the view goes on (`preparing`).
//!
//! A member writes all of this into its own row of the view's control segment, whose columns are
//! monotonic (`row`). [`View`] is what is agreed, [`Proposal`] how a view ends;
//! [`Membership`] is one member's part in one view.
//!
//! Source: virtual synchrony as in Derecho (Jha et al., TOCS 2019). It differs in that the
//! ragged trim is computed before the proposal, not after it: the counts are frozen first, so
//! one agreement covers members and trims. One rule of takeover follows: a new leader adopts a
//! proposal that any member has echoed.

mod asking;
mod compression;
mod delivered;
mod detector;
mod ending;
mod logs;
mod merge;
mod pace;
mod preparing;
mod proposal;
mod protocol;
mod row;
#[cfg(all(test, not(loom)))]
#[expect(clippy::unwrap_used)]
mod tests;
mod view;

pub use asking::OpenRequest;
pub use delivered::{DeliveredCounts, DeliveredHistory};
pub use detector::{Detection, DetectorFigures, HeartbeatFigures};
pub use pace::Pace;
pub use proposal::{
    Notes, Proposal, Refusal, Removal, RemovalReason, Request, RequestId, Touched, Trim, Update,
};
pub use protocol::{
    Action, Decision, Finish, Membership, OutReason, Preparation, Rules, SubgroupEnds,
};
pub use row::CONTROL_ROW_LEN;
pub(crate) use row::{control_landmarks, steps_of_end};
pub use view::{Endpoint, HostId, Member, MemberId, Note, View, ViewError};
