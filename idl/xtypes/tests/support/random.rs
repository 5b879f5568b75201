//! xorshift64*: small, seeded, and deterministic.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound.max(1)
    }

    pub fn bytes(&mut self, length_max: usize) -> Vec<u8> {
        (0..self.below(length_max))
            .map(|_| self.next() as u8)
            .collect()
    }

    /// One to three bytes replaced.
    pub fn alter(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut altered = bytes.to_vec();
        for _ in 0..=self.below(3) {
            let index = self.below(altered.len());
            let new = match self.below(4) {
                0 => 0xff,
                1 => self.below(8) as u8,
                2 => altered.get(index).map_or(0, |byte| byte.wrapping_add(1)),
                _ => self.next() as u8,
            };
            if let Some(byte) = altered.get_mut(index) {
                *byte = new;
            }
        }
        altered
    }
}
