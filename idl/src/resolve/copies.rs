//! A bound on what declarations copy from others, so that a small text never becomes
//! a huge model.

use super::Resolver;
use super::annotations::Applied;
use crate::limits::COPIED_BYTES_MAX;
use crate::model::{CustomAnnotation, Member, Value};
use crate::source::Span;

/// Approximate size of a member, without the memory that it points to.
const MEMBER_BYTES: usize = 400;

impl Resolver<'_> {
    /// Counts bytes about to be copied, and returns whether the limit allows them. The
    /// first excess is reported.
    pub(super) fn may_copy(&mut self, bytes: usize, span: Span) -> bool {
        if self.copied > COPIED_BYTES_MAX {
            return false;
        }
        self.copied = self.copied.saturating_add(bytes);
        let within = self.copied <= COPIED_BYTES_MAX;
        if !within {
            let message =
                format!("declarations repeat more than {COPIED_BYTES_MAX} bytes of others");
            let hint = "inherited members, values of constants, and comments before many names";
            self.sink.error_hint(span, message, hint);
        }
        within
    }
}

pub(super) fn of_lines(lines: &[String]) -> usize {
    lines.iter().map(|line| 24 + line.len()).sum()
}

/// Size of a declaration with these annotations.
pub(super) fn of_applied(applied: &Applied<'_>, doc: &[String]) -> usize {
    let verbatim = applied.verbatim.iter().map(|one| 32 + one.text.len());
    MEMBER_BYTES + of_lines(doc) + of_custom(&applied.custom) + verbatim.sum::<usize>()
}

pub(super) fn of_member(member: &Member) -> usize {
    let named = MEMBER_BYTES + member.name.len() + of_lines(&member.doc);
    named + of_custom(&member.custom) + of_texts(member)
}

/// Size of the annotations of a member, including those of its type, without comments.
pub(super) fn of_texts(member: &Member) -> usize {
    let hash_id = member.hash_id.as_ref().map_or(0, String::len);
    of_default(member.default.as_ref(), member.unit.as_deref()) + hash_id
}

pub(super) fn of_default(default: Option<&Value>, unit: Option<&str>) -> usize {
    default.map_or(0, of_value) + unit.map_or(0, str::len)
}

pub(super) fn of_custom(all: &[CustomAnnotation]) -> usize {
    let arguments = all.iter().flat_map(|one| &one.arguments);
    arguments
        .map(|(name, value)| 80 + name.len() + of_value(value))
        .sum::<usize>()
        + all.len() * 64
}

pub(super) fn of_value(value: &Value) -> usize {
    match value {
        Value::String(text) => 32 + text.len(),
        _ => 32,
    }
}
