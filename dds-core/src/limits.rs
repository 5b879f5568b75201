//! All limits of the engine.

use spindle_dds_transport::MEMBERS_MAX;

/// Bytes of a message header; rings of headers are arrays of these.
pub const HEADER_LEN: usize = 64;

/// Alignment in bytes of payload extents, and so of samples.
pub const GRANULE: usize = 16;

/// Most message headers in a ring; a power of two. The header cursor shares a
/// 64-bit word with the message index and has 16 bits there.
pub const RING_MESSAGES_MAX: u32 = 1 << 15;

/// Fewest message headers in a ring.
pub const RING_MESSAGES_MIN: u32 = 2;

/// Most payload bytes in a ring; a power of two, as is the memory of each.
pub const RING_BYTES_MAX: u64 = 1 << 34;

/// Fewest payload bytes in a ring.
pub const RING_BYTES_MIN: u64 = 128;

/// Most messages of a ring in one epoch, nulls included: more than 300 days at ten million
/// per second.
pub const MESSAGE_INDEX_MAX: u64 = (1 << 48) - 1;

/// Most that a log can say its end is. Positions go on from there.
pub const POSITION_MAX: u64 = 1 << 62;

/// Most rosters that a log has recorded and that are not confirmed.
pub const LOG_ROSTERS_MAX: usize = 32;

/// Most subgroups of a domain.
pub const SUBGROUPS_MAX: usize = 4096;

/// Ordered positions between two checkpoints of the digest.
pub const DIGEST_EVERY: u64 = 1 << 16;

/// Last checkpoints of the digest in a row.
pub const DIGESTS_KEPT: u64 = 8;

/// Most bytes of a request: of an update the changed endpoints, of a join the participant.
pub const REQUEST_LEN_MAX: usize = 1 << 16;

/// Bytes of a member's requests in one view, with which any further one still has room. With
/// more, the leader ends the view even if all of them are refused.
pub const REQUESTS_LEN_FEW: usize = 1 << 14;

/// Most bytes of a member's requests in one view, compressed.
pub const REQUESTS_LEN_MAX: usize = REQUEST_LEN_MAX + REQUESTS_LEN_FEW + REQUESTS_HEAD_LEN;

/// Bytes that requests that are published together may take beyond their own.
pub const REQUESTS_HEAD_LEN: usize = 128;

/// Most bytes that a member's requests in one view, or a proposal without its trims, become when
/// they are read: several times what their texts have room for.
pub const CHANGES_LEN_MAX: usize = 4 << 20;

/// Most bytes that a view becomes when a newcomer reads it.
pub const VIEW_LEN_MAX: usize = 1 << 28;

/// Most bytes of a leader's intent: a compressed proposal without trims, and a flag.
pub const INTENT_LEN_MAX: usize = PROPOSAL_LEN_MAX / 2 + 128;

/// Most bytes of a member's answer to an intent.
pub const ANSWER_LEN_MAX: usize = 256;

/// Most bytes of a member's report of its counts.
pub const REPORT_LEN_MAX: usize = 1 << 16;

/// Most bytes of a proposal, compressed but for the trims, for which half of them are.
pub const PROPOSAL_LEN_MAX: usize = 1 << 18;

/// Most bytes of the notes of all members of a view together; equal notes of several members
/// count once. A joining member receives all notes of a view at once.
pub const NOTES_LEN_MAX: usize = 8 << 20;

/// Bytes that a shorter note takes of [`NOTES_LEN_MAX`].
pub const NOTE_LEN_MIN: usize = 64;

/// Most bytes of the reason for which a proposal expels a member or refuses a request; a longer
/// reason is cut.
pub const REASON_LEN_MAX: usize = 220;

const _: () = {
    assert!(RING_MESSAGES_MAX.is_power_of_two() && RING_MESSAGES_MAX <= 1 << 15);
    assert!(RING_BYTES_MAX.is_power_of_two() && RING_BYTES_MIN.is_power_of_two());
    // Extents are counted in granules by 32-bit wrapping cursors.
    assert!(RING_BYTES_MAX / GRANULE as u64 <= 1 << 31);
    assert!(DIGESTS_KEPT.is_power_of_two());
    assert!(ANSWER_LEN_MAX >= REASON_LEN_MAX);
    // Trims are as long as a report. With all members expelled there is room for one
    // request at least.
    assert!(PROPOSAL_LEN_MAX / 2 >= REPORT_LEN_MAX);
    assert!(PROPOSAL_LEN_MAX / 2 > REQUEST_LEN_MAX + (MEMBERS_MAX + 1) * (REASON_LEN_MAX + 32));
    // An intent with so many refusals is agreed, even if nothing else is in it.
    assert!(INTENT_LEN_MAX / 4 > REASON_LEN_MAX + 32);
};
