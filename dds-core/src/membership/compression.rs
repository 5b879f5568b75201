//! Compression of what members tell each other about a view.
//!
//! Announcements of endpoints are much alike: most of one's bytes stand in the one before. So they
//! are written as references to bytes before them (LZ77), and one view has room for hundreds of
//! endpoints.
//!
//! ```text
//!   0 | the bytes as they are                         where that is not longer
//!   1 | sequence | sequence ... | last literals
//!       sequence: token, more of the literal length, literals, distance (2), more of the match length
//!       token:    literal length, match length - 4: four bits each; 15 goes on in bytes up to 255
//! ```
//!
//! Bytes that are read come from another process: lengths and distances are checked, and what they
//! may become is bounded.

/// Shortest match that is worth a reference.
const MATCH_LEN_MIN: usize = 4;
/// Longest distance of a reference.
const DISTANCE_MAX: usize = u16::MAX as usize;
/// Places that are remembered, by a hash of the bytes there.
const PLACES: usize = 1 << PLACES_BITS;
const PLACES_BITS: u32 = 13;

const PLAIN: u8 = 0;
const COMPRESSED: u8 = 1;

/// Compresses bytes: to one byte more than they are, at most.
pub(super) fn compress(plain: &[u8]) -> Vec<u8> {
    let mut out = vec![COMPRESSED];
    let mut places = vec![0_u32; PLACES];
    let (mut at, mut literals_from) = (0, 0);
    while let Some(here) = four_bytes(plain, at) {
        let place = &mut places[hash(here)];
        // Places are kept plus one: 0 is none.
        let before = (*place as usize).checked_sub(1);
        *place = u32::try_from(at + 1).unwrap_or(0);
        let before = before.filter(|it| at - it <= DISTANCE_MAX);
        match before.filter(|it| four_bytes(plain, *it) == Some(here)) {
            Some(before) => {
                let len = same_len(&plain[before..], &plain[at..]);
                put_sequence(
                    &mut out,
                    &plain[literals_from..at],
                    Some((at - before, len)),
                );
                at += len;
                literals_from = at;
            }
            None => at += 1,
        }
    }
    put_sequence(&mut out, &plain[literals_from..], None);
    if out.len() > plain.len() {
        out.clear();
        out.push(PLAIN);
        out.extend(plain);
    }
    out
}

fn four_bytes(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*four))
}

fn hash(four: u32) -> usize {
    (four.wrapping_mul(2_654_435_761) >> (u32::BITS - PLACES_BITS)) as usize
}

/// How many bytes of `later` are those of `earlier`.
fn same_len(earlier: &[u8], later: &[u8]) -> usize {
    let pairs = earlier.iter().zip(later);
    pairs.take_while(|(one, other)| one == other).count()
}

/// Appends literals, and a reference of this distance and length. Without one it is the last.
fn put_sequence(out: &mut Vec<u8>, literals: &[u8], reference: Option<(usize, usize)>) {
    let match_len = reference.map_or(0, |(_, len)| len - MATCH_LEN_MIN);
    let nibble = |len: usize| len.min(15) as u8;
    out.push(nibble(literals.len()) << 4 | nibble(match_len));
    put_more(out, literals.len());
    out.extend(literals);
    if let Some((distance, _)) = reference {
        out.extend((distance as u16).to_le_bytes());
        put_more(out, match_len);
    }
}

/// What a length is beyond the 15 of its token.
fn put_more(out: &mut Vec<u8>, len: usize) {
    let Some(mut more) = len.checked_sub(15) else {
        return;
    };
    while more >= 255 {
        out.push(255);
        more -= 255;
    }
    out.push(more as u8);
}

/// Reads bytes that [`compress`] wrote. `None` if they are not, or become more than `len_max`.
pub(super) fn decompress(bytes: &[u8], len_max: usize) -> Option<Vec<u8>> {
    let (kind, bytes) = bytes.split_first()?;
    match *kind {
        PLAIN => (bytes.len() <= len_max).then(|| bytes.to_vec()),
        COMPRESSED => read_sequences(bytes, len_max),
        _ => None,
    }
}

fn read_sequences(mut bytes: &[u8], len_max: usize) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    loop {
        let token = take(&mut bytes, 1)?[0];
        let len = read_len(&mut bytes, token >> 4)?;
        let literals = take(&mut bytes, len)?;
        if plain.len() + literals.len() > len_max {
            return None;
        }
        plain.extend(literals);
        if bytes.is_empty() {
            // The last one has no reference.
            return (token & 15 == 0).then_some(plain);
        }
        let distance = take(&mut bytes, 2)?;
        let distance = usize::from(u16::from_le_bytes([distance[0], distance[1]]));
        let len = read_len(&mut bytes, token & 15)?.checked_add(MATCH_LEN_MIN)?;
        let mut from = plain.len().checked_sub(distance)?;
        if distance == 0 || len > len_max - plain.len() {
            return None;
        }
        let end = plain.len() + len;
        while plain.len() < end {
            // It may reach into what it makes.
            let part = (end - plain.len()).min(plain.len() - from);
            plain.extend_from_within(from..from + part);
            from += part;
        }
    }
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

fn read_len(bytes: &mut &[u8], nibble: u8) -> Option<usize> {
    let mut len = usize::from(nibble);
    if nibble < 15 {
        return Some(len);
    }
    loop {
        let more = take(bytes, 1)?[0];
        len = len.checked_add(usize::from(more))?;
        if more < 255 {
            return Some(len);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const LEN_MAX: usize = 1 << 20;

    /// A stream of bytes that repeats itself now and then.
    fn bytes(seed: u64, len: usize, alphabet: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let number = next();
            if number.is_multiple_of(4) && !bytes.is_empty() {
                let from = (next() as usize) % bytes.len();
                let repeated = (next() as usize % 700).min(bytes.len() - from);
                bytes.extend_from_within(from..from + repeated);
            } else {
                bytes.push((number >> 32) as u8 % alphabet as u8);
            }
        }
        bytes
    }

    #[test]
    fn what_is_compressed_is_read_as_it_was() {
        for seed in 0..200 {
            let plain = bytes(seed, (seed * seed) as usize * 3, 1 + seed % 255);
            let compressed = compress(&plain);
            assert!(compressed.len() <= plain.len() + 1);
            assert_eq!(decompress(&compressed, plain.len()), Some(plain.clone()));
            if let Some(less) = plain.len().checked_sub(1) {
                assert_eq!(decompress(&compressed, less), None, "beyond the bound");
            }
        }
        let far = [bytes(1, 4000, 200), vec![7; 70_000], bytes(1, 4000, 200)].concat();
        assert_eq!(decompress(&compress(&far), LEN_MAX), Some(far));
    }

    #[test]
    fn announcements_take_a_tenth() {
        let one = |number: u32| {
            format!(r#"{{"guid":[0,7,{number}],"topic":"T{number}","type":"a::Long::Name"}}"#)
        };
        let filler = "x".repeat(300);
        let all: String = (0..500).map(|number| one(number) + &filler).collect();
        assert!(compress(all.as_bytes()).len() * 10 < all.len());
    }

    #[test]
    fn other_bytes_are_refused_without_panic() {
        let compressed = compress(&bytes(9, 3000, 20));
        for at in 0..compressed.len() {
            for value in [0, 1, 15, 16, 127, 240, 255] {
                let mut altered = compressed.clone();
                altered[at] = value;
                let read = decompress(&altered, LEN_MAX);
                assert!(read.is_none_or(|it| it.len() <= LEN_MAX));
            }
            let cut = decompress(&compressed[..at], LEN_MAX);
            assert!(cut.is_none_or(|it| it.len() < 3000));
        }
        assert_eq!(decompress(&[], LEN_MAX), None);
        assert_eq!(decompress(&[2, 0], LEN_MAX), None);
        // A reference to before the beginning, and one to nowhere.
        assert_eq!(decompress(&[COMPRESSED, 0, 1, 0, 0], LEN_MAX), None);
        assert_eq!(decompress(&[COMPRESSED, 16, 9, 0, 0, 0], LEN_MAX), None);
        // A long match of few bytes.
        let long = [&[COMPRESSED, 31, 9, 1, 0][..], &[255; 9000], &[0, 0]].concat();
        assert_eq!(decompress(&long, LEN_MAX), None);
    }
}
