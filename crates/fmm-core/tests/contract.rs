//! The contract of every place, on the cores.

testkit::contract!(Some(testkit::contract::Cores));
