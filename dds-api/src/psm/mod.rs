//! The literal DCPS operations over the idiomatic interface. Being written.
