//! The paper's figures in virtual time: the runs of the model, and the verdicts on the claims.

pub(crate) mod figures;
mod lab;

pub(crate) use lab::Lab;
