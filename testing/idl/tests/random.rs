//! Every topic type of IDL that the build script makes from seeds: encoded, decoded, viewed,
//! built in place, and as a dynamic type; whole, truncated, and altered.
//!
//! `.ci/random` runs other seeds.

#![forbid(unsafe_code)]

use std::fmt::Debug;

use spindle_dds_idl_conformance::every_way::{every_alteration, every_way as try_in_every_way};
use spindle_dds_idl_conformance::exercise::Exercise;
use spindle_dds_idl_conformance::memory::{Counting, most_held};

include!(concat!(env!("OUT_DIR"), "/random_modules.rs"));

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn every_way<T: Exercise>()
where
    for<'a> T::View<'a>: Debug,
{
    try_in_every_way::<T>(40);
    every_alteration::<T>(3);
}

/// If the allocator counted nothing, no sample would ever take too much memory.
#[test]
fn memory_is_counted() {
    let ((), held) = most_held(|| drop(vec![0_u8; 5000]));
    assert!((5000..6000).contains(&held), "{held}");
}

mod checks {
    use super::every_way;

    include!(concat!(env!("OUT_DIR"), "/random_checks.rs"));
}
