//! Which logs are not written, in words.

use spindle_dds_core::membership::{MemberId, View};

use crate::discovery::ParticipantInfo;
use crate::history::Troubled;

/// So many logs are named at most.
const NAMED_MAX: usize = 3;

/// Names logs that are in trouble, and the participants that have them. `None` if there are none.
pub(crate) fn name_troubles(view: Option<&View>, troubles: &[Troubled]) -> Option<String> {
    let named = troubles.iter().take(NAMED_MAX);
    let named = named.map(|(member, trouble)| match member {
        Some(member) => format!("{}, at {}", trouble.text, name_of(view, *member)),
        None => trouble.text.clone(),
    });
    let named: Vec<String> = named.collect();
    let more = match troubles.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!("; and {more} logs more"),
    };
    (!named.is_empty()).then(|| named.join("; ") + &more)
}

/// The participant of a member.
pub(super) fn name_of(view: Option<&View>, member: MemberId) -> String {
    let found = view.and_then(|view| view.members.get(view.rank(member)?.index()));
    let info = found.and_then(|member| ParticipantInfo::of(member).ok());
    match info {
        Some(info) if info.name.is_empty() => format!("participant of process {}", info.pid),
        Some(info) => format!("participant {} of process {}", info.name, info.pid),
        None => "a participant that is gone".to_owned(),
    }
}
