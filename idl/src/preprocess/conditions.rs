//! The stack of open `#if` groups of one file.

use crate::source::Span;

#[derive(Debug, Default)]
pub(super) struct Conditions {
    open: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    span: Span,
    /// The text around the group is active.
    outer: bool,
    /// The current branch is active.
    active: bool,
    /// A branch was already active.
    done: bool,
    else_seen: bool,
}

impl Conditions {
    /// Whether text is active at this position.
    pub(super) fn active(&self) -> bool {
        self.open.last().is_none_or(|group| group.active)
    }

    /// Whether the condition of an `#elif` is evaluated at this position.
    pub(super) fn wants_elif(&self) -> bool {
        self.open
            .last()
            .is_some_and(|group| group.outer && !group.done)
    }

    /// Where the innermost open group began.
    pub(super) fn open(&self) -> Option<Span> {
        self.open.last().map(|group| group.span)
    }

    pub(super) fn begin(&mut self, span: Span, holds: bool) {
        let outer = self.active();
        let active = outer && holds;
        self.open.push(Group {
            span,
            outer,
            active,
            done: active,
            else_seen: false,
        });
    }

    /// `#elif` and `#else`; says what is wrong.
    pub(super) fn branch(&mut self, holds: bool, is_else: bool) -> Result<(), &'static str> {
        let group = self
            .open
            .last_mut()
            .ok_or("this branch belongs to no `#if`")?;
        if group.else_seen {
            return Err("the `#if` has had its `#else` already");
        }
        group.else_seen = is_else;
        group.active = group.outer && !group.done && holds;
        group.done |= group.active;
        Ok(())
    }

    /// `#endif`; says what is wrong.
    pub(super) fn end(&mut self) -> Result<(), &'static str> {
        self.open.pop().map(drop).ok_or("`#endif` without `#if`")
    }
}
