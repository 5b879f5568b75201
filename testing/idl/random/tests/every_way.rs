//! Every topic type of IDL that nobody wrote, in every way there is to write and read it:
//! encoded, decoded, viewed, built in place, and as a type known at run time; whole, cut
//! short, and altered.

use std::fmt::Debug;

use spindle_dds_idl_exercise::every_way::{every_alteration, every_way as try_in_every_way};
use spindle_dds_idl_exercise::memory::{Counting, most_held};
use spindle_dds_idl_exercise::tried::Exercise;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn every_way<T: Exercise>()
where
    for<'a> T::View<'a>: Debug,
{
    try_in_every_way::<T>(40);
    every_alteration::<T>(3);
}

/// Without this, nothing would ever take too much.
#[test]
fn memory_is_counted() {
    let ((), held) = most_held(|| drop(vec![0_u8; 5000]));
    assert!((5000..6000).contains(&held), "{held}");
}

include!(concat!(env!("OUT_DIR"), "/checks.rs"));
