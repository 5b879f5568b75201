//! The backend over real devices: those of a guest with nodes 1 and 2, `rxe1` at 10.77.0.1
//! and `rxe2` at 10.77.0.2, on a bridge.

mod failures;
mod harness;
mod lives;
mod pushes;
mod sleeping;
mod trials;

use core::net::Ipv4Addr;
use core::time::Duration;

use super::{Hooks, RdmaError, RdmaTransport};
use crate::rdma::RdmaOptions;

#[test]
fn a_device_that_is_not_there_is_named() {
    let hooks = Hooks {
        wake: Box::new(|_, _| {}),
        failed: Box::new(|_, _| {}),
        proved: Box::new(|_| {}),
        io: Default::default(),
    };
    let options = RdmaOptions {
        device: Some("no such device".to_owned()),
        ..RdmaOptions::default()
    };
    let listen = Ipv4Addr::UNSPECIFIED.into();
    let error =
        RdmaTransport::open(&options, listen, Duration::from_secs(1), hooks).expect_err("none");
    assert!(matches!(error, RdmaError::NoSuchDevice { .. }), "{error}");
    assert!(error.to_string().contains("\"no such device\""), "{error}");
}
