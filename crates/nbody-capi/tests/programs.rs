//! Programs in C that do what they should not, or much at once. tests/c has them.

use crate::common::{Link, Place};

#[test]
fn wrong_input_has_a_code_and_a_text() {
    assert_eq!(Place::new().run_c("attack.c", Link::Shared), "0 failures\n");
}

#[test]
fn random_calls_of_eight_threads_have_the_right_bits() {
    assert_eq!(Place::new().run_c("threads.c", Link::Shared), "0 wrong\n");
}

#[test]
fn forks_during_sums_leave_parent_and_child_usable() {
    for link in [Link::Shared, Link::Static] {
        assert_eq!(Place::new().run_c("forks.c", link), "0 failed, with sums meanwhile\n");
    }
}

#[test]
fn library_can_be_unloaded_after_a_sum() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(Place::new().run_c("unload.c", Link::Shared), format!("{version}\n{version}\n"));
}
