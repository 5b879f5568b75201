//! The paper's figures in virtual time: the model's runs, and what they say of each claim.

pub(crate) mod figures;
mod lab;

pub(crate) use lab::Lab;
