//! What an epoll event of a stream's socket, or of the I/O thread, is about.

use rustix::event::epoll::EventData;

/// What an event is about: a link, by number and direction, all streams from peers together, or the
/// thread's own doorbell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    From(u64),
    To(u64),
    Streams,
    Kick,
}

impl Source {
    pub(super) fn token(self) -> EventData {
        EventData::new_u64(match self {
            Self::From(link) => link << 1,
            Self::To(link) => link << 1 | 1,
            Self::Streams => u64::MAX - 1,
            Self::Kick => u64::MAX,
        })
    }

    pub(super) fn of(token: EventData) -> Self {
        match token.u64() {
            u64::MAX => Self::Kick,
            token if token == u64::MAX - 1 => Self::Streams,
            token if token & 1 == 0 => Self::From(token >> 1),
            token => Self::To(token >> 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_identify_their_sources() {
        let sources = [0, 1, 1 << 40].map(|link| [Source::From(link), Source::To(link)]);
        for source in sources
            .into_iter()
            .flatten()
            .chain([Source::Streams, Source::Kick])
        {
            assert_eq!(Source::of(source.token()), source);
        }
    }
}
