//! Writing and reading the payload of a sample.

/// Writes the first and the last byte, or all bytes.
pub(super) fn write(payload: &mut [u8], number: u64, fill: bool) {
    let byte = number as u8;
    if fill {
        payload.fill(byte);
        return;
    }
    if let Some(first) = payload.first_mut() {
        *first = byte;
    }
    if let Some(last) = payload.last_mut() {
        *last = byte;
    }
}

/// The sum of the first and the last byte, or of all bytes.
pub(super) fn sum(payload: &[u8], fill: bool) -> u64 {
    if fill {
        return sum_all(payload);
    }
    let ends = [payload.first(), payload.last()];
    ends.into_iter()
        .flatten()
        .map(|byte| u64::from(*byte))
        .sum()
}

/// The sum of all bytes, in blocks whose sum fits into 16 bits, so that the compiler adds many
/// bytes at once. Byte by byte a processor adds about 7 GB/s, which would dominate the figures.
fn sum_all(payload: &[u8]) -> u64 {
    let blocks = payload.chunks(256);
    let sums = blocks.map(|block| block.iter().map(|byte| u16::from(*byte)).sum::<u16>());
    sums.map(u64::from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_of_the_bytes_written() {
        let mut payload = [0; 5];
        write(&mut payload, 3, false);
        assert_eq!((payload, sum(&payload, false)), ([3, 0, 0, 0, 3], 6));
        write(&mut payload, 257, true);
        assert_eq!((sum(&payload, false), sum(&payload, true)), (2, 5));
        assert_eq!(sum(&[255; 1000], true), 255_000);
        write(&mut [], 1, false);
        assert_eq!(sum(&[], false), 0);
    }
}
