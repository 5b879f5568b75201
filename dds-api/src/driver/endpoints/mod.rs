//! The endpoints of this participant, and what each view means to them.

pub(super) mod announced_matches;
mod history_matches;
mod known_endpoints;
pub(super) mod local_endpoints;
mod mismatches;
pub(super) mod view_matcher;
