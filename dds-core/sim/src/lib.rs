//! temp
mod life;
mod violation;
pub use life::{LifePlan, LifeReport, live};
pub use violation::{Finding, Violation};
