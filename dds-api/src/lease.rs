//! The shortest LIVELINESS lease that can be kept (DDS 1.4 §2.2.3.11).

use std::time::Duration;

use spindle_dds_qos::Liveliness;

use crate::error::{Error, Result};

/// A failure is detected within `failure_limit`, and the other members need time to agree on a
/// view without the member. So a lease has to be at least twice as long.
///
/// # Errors
/// UNSUPPORTED, with both numbers.
pub(crate) fn check_lease(liveliness: &Liveliness, failure_limit: Duration) -> Result<()> {
    let lease = liveliness.lease_duration;
    let least = spindle_dds_qos::Duration::from(2 * failure_limit);
    if lease >= least {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "a LIVELINESS lease_duration of {lease}: it has to be {least} at least, which is twice \
         spindle.failure.limit_ms ({})",
        failure_limit.as_millis()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_at_least_twice_the_limit() {
        let check = |lease: spindle_dds_qos::Duration| {
            let liveliness = Liveliness {
                lease_duration: lease,
                ..Liveliness::default()
            };
            check_lease(&liveliness, Duration::from_millis(3000))
        };
        let millis = spindle_dds_qos::Duration::from_millis;
        assert_eq!(check(spindle_dds_qos::Duration::INFINITE), Ok(()));
        assert_eq!(check(millis(6000)), Ok(()));
        let error = check(millis(5999)).unwrap_err();
        assert!(matches!(error, Error::Unsupported(_)), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("5.999") && text.contains("limit_ms (3000)"),
            "{text}"
        );
    }
}
