//! `nbody`: N-body sums and simulations.

fn main() {}
