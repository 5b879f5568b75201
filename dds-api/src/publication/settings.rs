//! How a writer writes, by its QoS.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spindle_dds_core::DeliveryClass;
use spindle_dds_idl_runtime::{Encapsulation, Representation};
use spindle_dds_qos::{
    DataRepresentationId, DataWriterQos, Duration, HistoryKind, ReliabilityKind,
};

use crate::error::{Error, Result};

/// What each write asks of the QoS. It changes until the writer is enabled, and then never: the
/// release of the writer's port publishes it, so that relaxed reads do, which cost what those of
/// plain members would.
#[derive(Debug, Default)]
pub(super) struct Settings {
    is_reliable: AtomicBool,
    /// RELIABLE, KEEP_ALL.
    waits_for_room: AtomicBool,
    is_xcdr2: AtomicBool,
    /// Seconds, and nanoseconds in the lower half.
    max_blocking_time: AtomicU64,
    /// That of each representation.
    encapsulations: [EncapsulationId; 2],
}

type EncapsulationId = u16;

impl Settings {
    /// # Errors
    /// UNSUPPORTED for a representation that is not written.
    pub(super) fn new(qos: &DataWriterQos, encapsulations: [Encapsulation; 2]) -> Result<Self> {
        if let unwritten @ DataRepresentationId::Xml = qos.representation.written() {
            return Err(Error::Unsupported(format!("{unwritten} is not written")));
        }
        let settings = Self {
            encapsulations: encapsulations.map(|it| it.0),
            ..Self::default()
        };
        settings.set(qos);
        Ok(settings)
    }

    pub(super) fn set(&self, qos: &DataWriterQos) {
        let is_reliable = qos.reliability.kind == ReliabilityKind::Reliable;
        let waits = is_reliable && qos.history.kind == HistoryKind::KeepAll;
        let is_xcdr2 = qos.representation.written() == DataRepresentationId::Xcdr2;
        let max = qos.reliability.max_blocking_time;
        let max = u64::from(max.sec().unsigned_abs()) << 32 | u64::from(max.nanosec());
        self.is_reliable.store(is_reliable, Ordering::Relaxed);
        self.waits_for_room.store(waits, Ordering::Relaxed);
        self.is_xcdr2.store(is_xcdr2, Ordering::Relaxed);
        self.max_blocking_time.store(max, Ordering::Relaxed);
    }

    pub(super) fn class_of(qos: &DataWriterQos) -> DeliveryClass {
        match qos.reliability.kind {
            ReliabilityKind::Reliable => DeliveryClass::Ordered,
            ReliabilityKind::BestEffort => DeliveryClass::Unordered,
        }
    }

    #[inline]
    pub(super) fn class(&self) -> DeliveryClass {
        match self.is_reliable.load(Ordering::Relaxed) {
            true => DeliveryClass::Ordered,
            false => DeliveryClass::Unordered,
        }
    }

    #[inline]
    pub(super) fn waits_for_room(&self) -> bool {
        self.waits_for_room.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn representation(&self) -> Representation {
        match self.is_xcdr2.load(Ordering::Relaxed) {
            true => Representation::Xcdr2,
            false => Representation::Xcdr1,
        }
    }

    #[inline]
    pub(super) fn encapsulation(&self) -> Encapsulation {
        let [xcdr1, xcdr2] = self.encapsulations;
        Encapsulation(match self.is_xcdr2.load(Ordering::Relaxed) {
            true => xcdr2,
            false => xcdr1,
        })
    }

    pub(super) fn max_blocking_time(&self) -> Duration {
        let max = self.max_blocking_time.load(Ordering::Relaxed);
        let sec = i32::try_from(max >> 32).unwrap_or(i32::MAX);
        Duration::new(sec, max as u32).unwrap_or(Duration::INFINITE)
    }
}

#[cfg(test)]
mod tests {
    use spindle_dds_qos::{DataRepresentation, History, Reliability};

    use super::*;

    #[test]
    fn they_are_those_of_the_last_qos() {
        let encapsulations = [Encapsulation(1), Encapsulation(7)];
        let settings = Settings::new(&DataWriterQos::default(), encapsulations).unwrap();
        assert_eq!(settings.class(), DeliveryClass::Ordered);
        assert_eq!(settings.encapsulation(), encapsulations[0]);
        for max in [
            Duration::ZERO,
            Duration::from_millis(1_250),
            Duration::INFINITE,
        ] {
            let qos = DataWriterQos {
                reliability: Reliability::reliable(max),
                history: History::keep_all(),
                representation: DataRepresentation {
                    value: vec![DataRepresentationId::Xcdr2],
                },
                ..DataWriterQos::default()
            };
            settings.set(&qos);
            assert_eq!(settings.max_blocking_time(), max);
            assert!(settings.waits_for_room());
            assert_eq!(settings.representation(), Representation::Xcdr2);
            assert_eq!(settings.encapsulation(), encapsulations[1]);
        }
        let qos = DataWriterQos {
            reliability: Reliability::best_effort(),
            history: History::keep_all(),
            ..DataWriterQos::default()
        };
        settings.set(&qos);
        assert_eq!(settings.class(), DeliveryClass::Unordered);
        assert!(!settings.waits_for_room());
    }
}
