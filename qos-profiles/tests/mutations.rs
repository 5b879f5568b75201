//! Whatever the bytes, reading ends with profiles or with remarks, never a panic.

use spindle_dds_qos::{LoadError, QosProvider};

/// A small generator of pseudo-random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Loads the bytes and, if they load, asks for all there is.
fn exercise(bytes: &[u8]) -> bool {
    let provider = match QosProvider::from_sources([("random.xml", bytes)]) {
        Ok(provider) => provider,
        Err(LoadError::Invalid { diagnostics }) => {
            assert!(!diagnostics.is_empty());
            return false;
        }
        Err(other) => panic!("{other}"),
    };
    provider.check();
    for name in provider.profile_names() {
        let profile = provider.profile(&name).expect("a listed name is known");
        let _ = (
            profile.participant_qos(),
            profile.publisher_qos(),
            profile.subscriber_qos(),
        );
        let _ = (
            profile.topic_qos("T"),
            profile.datawriter_qos("T"),
            profile.datareader_qos("T"),
        );
    }
    true
}

/// One small change of `text`: bytes flipped, cut, doubled or swapped for a token.
fn mutate(text: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(text.len());
    let end = (at + random.below(40)).min(text.len());
    match random.below(5) {
        0 => text
            .get_mut(at)
            .into_iter()
            .for_each(|byte| *byte = random.next() as u8),
        1 => drop(text.drain(at..end)),
        2 => {
            let copy = text[at..end].to_vec();
            let to = random.below(text.len());
            text.splice(to..to, copy);
        }
        3 => text.truncate(at),
        _ => {
            let token = TOKENS[random.below(TOKENS.len())];
            text.splice(at..end, token.bytes());
        }
    }
}

#[test]
fn random_bytes() {
    let mut random = Random(1);
    for _ in 0..1000 {
        let length = random.below(300);
        let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        exercise(&bytes);
    }
}

#[test]
fn random_tokens() {
    let mut random = Random(2);
    for _ in 0..1000 {
        let text: String = (0..random.below(60))
            .map(|_| TOKENS[random.below(TOKENS.len())])
            .collect();
        exercise(text.as_bytes());
    }
}

#[test]
fn mutated_files() {
    let mut random = Random(3);
    let mut loaded = 0;
    let cases = 2000;
    for case in 0..cases {
        let mut text = SEEDS[case % SEEDS.len()].to_vec();
        for _ in 0..=random.below(3) {
            mutate(&mut text, &mut random);
        }
        loaded += usize::from(exercise(&text));
    }
    assert!(loaded > 0 && loaded < cases, "{loaded} of {cases} loaded");
}

const SEEDS: &[&[u8]] = &[
    include_bytes!("data/fleet.xml"),
    include_bytes!("data/earlier_schema.xml"),
    include_bytes!("data/broken/vendors.xml"),
    include_bytes!("data/broken/inheritance.xml"),
];

const TOKENS: &[&str] = &[
    "<dds>",
    "</dds>",
    "<qos_library name='L'>",
    "</qos_library>",
    "<qos_profile name='P'>",
    "<qos_profile name='Q' base_name='P'>",
    "</qos_profile>",
    "<datawriter_qos>",
    "</datawriter_qos>",
    "<datareader_qos topic_filter='[a-'>",
    "</datareader_qos>",
    "<history>",
    "<depth>",
    "4294967296",
    "-1",
    "</depth>",
    "</history>",
    "&lt;",
    "&#0;",
    "&#xD800;",
    "&x;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "<?xml version='1.0'?>",
    "<!DOCTYPE a>",
    "DURATION_INFINITY",
    "<deadline><period><sec>",
    "\u{0}",
    "\u{feff}",
    "é",
    "'",
    "\"",
    "<",
    ">",
    "/>",
    "=",
];
