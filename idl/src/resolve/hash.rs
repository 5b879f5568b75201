//! Member ids from names: XTypes 1.3 §7.3.1.2.1.1.

use md5::{Digest, Md5};

/// The first four bytes of the MD5 of the name, little endian, cut to 28 bits.
pub(super) fn member_id(name: &str) -> u32 {
    let digest = Md5::digest(name.as_bytes());
    let mut word = [0; 4];
    word.iter_mut()
        .zip(digest)
        .for_each(|(to, from)| *to = from);
    u32::from_le_bytes(word) & crate::limits::MEMBER_ID_MAX
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(super::member_id("color"), 0x0FA5_DD70);
        assert_eq!(super::member_id("shapesize"), 0x0477_90DA);
    }
}
