//! The paper's figures: the runs of each, and the paper's statements on it.

pub(crate) mod batching;
pub(crate) mod copies;
mod levels;
mod nulls;
mod outcome;
pub(crate) mod subgroups;
mod synchronization;
pub(crate) mod windows;

use crate::plan::Plan;
use crate::systems::Scale;

/// The figures that are experiments.
pub(crate) const NUMBERS: [u32; 16] = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18];

/// The plan of a figure of [`NUMBERS`].
pub(crate) fn plan(number: u32, scale: Scale) -> Plan {
    match number {
        3 => batching::figure_3(scale),
        4 => batching::figure_4(scale),
        5 => batching::figure_5(scale),
        6 => windows::figure_6(scale),
        7 => windows::figure_7(scale),
        8 => subgroups::figure_8(scale),
        9 => subgroups::figure_9(scale),
        10 => nulls::figure_10(scale),
        11 => nulls::figure_11(scale),
        12 => synchronization::figure_12(scale),
        13 => subgroups::figure_13(scale),
        14 => copies::figure_14(),
        15 => copies::figure_15(scale),
        16 => outcome::figure_16(scale),
        17 => outcome::figure_17(scale),
        _ => levels::figure_18(scale),
    }
}
