//! Who is in the group: the view protocol, without waiting and without I/O.
//!
//! All participants of a domain agree on a sequence of views. A view ends by
//! one proposal, which says who goes, who comes, which endpoints change, and
//! where the order of each replaced subgroup is cut:
//!
//! ```text
//!   suspicion ---------------------------+
//!   request --> intent (which subgroups) +--> wedge --> report (counts) --> proposal
//!                                                                              |
//!   next view <-- finish (deliver up to the trim) <-- commit <-- echo by all <-+
//! ```
//!
//! Everything is said in the member's own row of the view's control segment,
//! once, and only grows (`row`). [`View`] is what is agreed, [`Proposal`] how
//! it ends; [`Membership`] is one member's part in one view.
//!
//! Source: virtual synchrony as in Derecho (Jha et al., TOCS 2019). It differs
//! in that the ragged edge is cut before the proposal, not after it: the counts
//! are frozen first, so one agreement covers members and trims, and there is one
//! rule of takeover: adopt a proposal that anybody has repeated.

mod asking;
mod detector;
mod ending;
mod proposal;
mod protocol;
mod row;
#[cfg(all(test, not(loom)))]
#[expect(clippy::unwrap_used)]
mod tests;
mod view;

pub use detector::Detection;
pub use proposal::{Asked, Notes, Proposal, Refusal, Removal, Request, Touched, Trim, Update, Why};
pub use protocol::{Action, Decision, Finish, LaneEnds, Membership, OutReason, Rules};
pub use row::CONTROL_ROW_LEN;
#[cfg(feature = "planted")]
pub(crate) use row::control_landmarks;
pub use view::{Endpoint, HostId, Member, MemberId, Note, View, ViewError};
