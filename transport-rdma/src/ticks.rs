//! The processor's time stamp counter, for code that reads the time so often that the
//! kernel's clock would be too slow.
//!
//! The counter runs at one rate, and in step on all processors, exactly where the kernel uses
//! it for its own time; the kernel verifies that and publishes it. So [`Ticks`] are available
//! only there: on Linux on x86-64, except in virtual machines whose host provides another
//! clock.

/// The counter, where it is usable. Its rate and its start are arbitrary: its ticks have to be
/// calibrated against a clock again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks(());

impl Ticks {
    /// `None` if the kernel uses another clock. Reads a file.
    pub fn find() -> Option<Self> {
        if cfg!(not(all(target_arch = "x86_64", not(miri)))) {
            return None;
        }
        const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let clock = std::fs::read_to_string(CLOCK).ok()?;
        (clock.trim_end() == "tsc").then_some(Self(()))
    }

    /// Reads the counter; takes some nanoseconds. The processor may execute it some tens of
    /// nanoseconds earlier or later than its place in the program.
    #[inline]
    pub fn read(self) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: every 64-bit processor has the instruction. The kernel can forbid it to a
        // process, but not where its own clock, which processes read by this instruction, is
        // to work.
        unsafe {
            core::arch::x86_64::_rdtsc()
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_do_not_go_back() {
        let Some(ticks) = Ticks::find() else {
            return;
        };
        let mut before = ticks.read();
        for _ in 0..10_000 {
            let now = ticks.read();
            // It may be executed before the previous one, but not much before.
            assert!(now + 1000 > before, "{before}, then {now}");
            before = now;
        }
    }
}
