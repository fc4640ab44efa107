//! Whether the machine has the memory that a number of particles needs, asked before there is any of them.

use crate::fault::Fault;
use crate::told::bytes;

/// Bytes of memory that a run takes for each particle at the least: its initial state, that of the solver with the tree
/// and the expansions, and the sums. Runs with `output.every` take up to twice as much.
const PER_PARTICLE: u64 = 500;

/// The least memory of a run with `n` particles, in bytes.
pub fn need(n: u64) -> u64 {
    n.saturating_mul(PER_PARTICLE)
}

/// The memory that is free for new work, in bytes, where the system tells.
pub fn available() -> Option<u64> {
    let table = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Refuses `n` particles that do not fit into `available` bytes; where those are unknown, nothing is refused.
///
/// # Errors
/// 71, with what is needed, what there is, and the way out.
pub fn check(n: u64, available: Option<u64>) -> Result<(), Fault> {
    match available.filter(|&a| need(n) > a) {
        None => Ok(()),
        Some(available) => {
            let line = format!(
                "out of memory: {n} particles need {} at the least, and {} are free; take fewer of them \
                 (particles.0.n and so on), or a machine with more memory",
                bytes(need(n)),
                bytes(available)
            );
            Err(Fault::new(71, line))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_numbers() {
        assert!(check(1_000_000, Some(need(1_000_000))).is_ok() && check(u64::MAX, None).is_ok());
        let fault = check(1 << 31, Some(8 << 30)).unwrap_err();
        let text = fault.render(false);
        assert!(fault.code == 71 && text.contains("2147483648 particles need 1000.00 GiB"), "{text}");
        assert!(text.contains("8.00 GiB are free"), "{text}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_tells_its_memory() {
        assert!(available().is_some_and(|a| a > 1 << 20));
    }
}
