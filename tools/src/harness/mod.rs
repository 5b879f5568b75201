//! Runs of processes, and the host around them.
//!
//! ```text
//!   processes   starts the processes of a run, reads their output, kills those that hang
//!   load        processor time: of a run, and of everything else on the host
//!   cache_line  the time that a cache line takes from one processor to another
//!   spread      median, minimum and maximum of several runs
//!   progress    the bar on a terminal
//!   plot        lines over axes, as SVG
//! ```

pub mod cache_line;
pub mod load;
pub mod plot;
pub mod processes;
pub mod progress;
pub mod spread;
