//! M3, no torn or reused bytes: a payload reads as it was built, when it is delivered and when it
//! is let go, also after its sender has left or its epoch has ended.

use spindle_dds_core::membership::MemberId;

/// A function of sender and token, so that bytes of another message are detected.
fn byte(sender: MemberId, token: u64, at: usize) -> u8 {
    let word = (sender.0 as u64).rotate_left(40) ^ token.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word.rotate_left(17) >> (at % 8 * 8)) as u8 ^ at as u8
}

/// Builds the payload of a message.
pub(in crate::life) fn build(bytes: &mut [u8], sender: MemberId, token: u64) {
    for (at, it) in bytes.iter_mut().enumerate() {
        *it = byte(sender, token, at);
    }
}

/// Checks that these are the bytes of that message.
pub(in crate::life) fn check(bytes: &[u8], sender: MemberId, token: u64) -> Result<(), String> {
    let wrong = |(at, it): &(usize, &u8)| **it != byte(sender, token, *at);
    match bytes.iter().enumerate().find(wrong) {
        None => Ok(()),
        Some((at, it)) => Err(format!(
            "byte {at} of message {token} of {sender} is {it:#04x}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, B};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let mut bytes = [0; 20];
        build(&mut bytes, A, 3);
        assert_eq!(check(&bytes, A, 3), Ok(()));
        assert!(check(&bytes, A, 4).is_err());
        assert!(check(&bytes, B, 3).is_err());
        bytes[19] ^= 1;
        assert!(check(&bytes, A, 3).is_err());
    }
}
