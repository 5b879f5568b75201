//! The processor's counter of time, for who asks for the time so often that asking the
//! kernel's clock is what takes it.
//!
//! It counts at one rate and alike on all processors exactly where the kernel itself keeps
//! time by it, which it looks after, and says. So [`Ticks`] are there only then: on Linux on
//! x86-64, outside of virtual machines whose host gives them another clock.

/// The counter, where there is one to go by. It is at its own rate, and begins anywhere:
/// what its ticks are worth, the clock has to say, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks(());

impl Ticks {
    /// `None` where the kernel keeps time by something else. Reads a file.
    pub fn find() -> Option<Self> {
        if cfg!(not(all(target_arch = "x86_64", not(miri)))) {
            return None;
        }
        const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let clock = std::fs::read_to_string(CLOCK).ok()?;
        (clock.trim_end() == "tsc").then_some(Self(()))
    }

    /// Ticks until now. Some nanoseconds: it is not kept in order with what stands before
    /// and after it, which the processor may do some tens of nanoseconds earlier or later.
    #[inline]
    pub fn read(self) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: an instruction that every processor of 64 bits has. The kernel may forbid it
        // to a process, but not where its own clock, which each process reads in this very
        // way, is to work.
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
    fn it_does_not_go_back() {
        let Some(ticks) = Ticks::find() else {
            return;
        };
        let mut before = ticks.read();
        for _ in 0..10_000 {
            let now = ticks.read();
            // It may have been read earlier than the one before, but not by much.
            assert!(now + 1000 > before, "{before}, then {now}");
            before = now;
        }
    }
}
