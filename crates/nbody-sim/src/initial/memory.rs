//! Whether the machine has the memory that a number of particles needs, asked before there is any of them.

use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::failure::Failure;
use crate::messages::bytes;

/// Bytes of memory that a run takes for each particle at the least: its initial state, that of the solver with the tree
/// and the expansions, and the sums. Runs with `output.every` take up to twice as much.
const PER_PARTICLE: u64 = 500;

/// The least memory of a run with `n` particles, in bytes.
pub fn need(n: u64) -> u64 {
    n.saturating_mul(PER_PARTICLE)
}

/// The memory that is free for new work, in bytes, where the system reports it. It is the least of
/// what the machine has, what limits of the process (`ulimit -v`, `ulimit -d`) leave, and what the
/// limits of its control groups leave.
pub fn available() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|t| kilobytes(&t, "MemAvailable:"));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let left = |limit: Resource, taken: &str| {
        Some(getrlimit(limit).current?.saturating_sub(kilobytes(&status, taken).unwrap_or(0)))
    };
    let process = [left(Resource::As, "VmSize:"), left(Resource::Data, "VmData:")];
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|t| in_groups(&t, Path::new(GROUPS)));
    [machine, groups].into_iter().chain(process).flatten().min()
}

/// The value of a line of `/proc`, in bytes.
fn kilobytes(table: &str, key: &str) -> Option<u64> {
    let line = table.lines().find_map(|l| l.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Where control groups are mounted.
const GROUPS: &str = "/sys/fs/cgroup";

/// What the control groups of `/proc/self/cgroup` leave, the first version's or the second's, and those that they lie in.
fn in_groups(table: &str, root: &Path) -> Option<u64> {
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (root, names) = match controllers {
            "" => (root.to_owned(), ["memory.max", "memory.current"]),
            c if c.split(',').any(|c| c == "memory") => {
                (root.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes"])
            }
            _ => return None,
        };
        let folder = root.join(path);
        folder.ancestors().take_while(|f| f.starts_with(&root)).filter_map(|f| in_group(f, names)).min()
    };
    table.lines().filter_map(of_line).min()
}

/// What one group leaves: its limit less what it has taken, of which pages of files are given back when they are needed.
fn in_group(folder: &Path, [limit, taken]: [&str; 2]) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    // "max" is no number.
    let limit: u64 = read(limit)?.trim().parse().ok()?;
    let taken: u64 = read(taken)?.trim().parse().ok()?;
    let files = |key: &str| read("memory.stat")?.lines().find_map(|l| l.strip_prefix(key))?.trim().parse().ok();
    let files: u64 = files("total_inactive_file ").or_else(|| files("inactive_file ")).unwrap_or(0);
    Some(limit.saturating_sub(taken.saturating_sub(files)))
}

/// Refuses `n` particles that do not fit into `available` bytes; where those are unknown, nothing is refused.
///
/// # Errors
/// 71, with what is needed, what there is, and the way out.
pub fn check(n: u64, available: Option<u64>) -> Result<(), Failure> {
    match available.filter(|&a| need(n) > a) {
        None => Ok(()),
        Some(available) => {
            let line = format!(
                "out of memory: {n} particles need {} at the least, and {} are free; take fewer of them \
                 (particles.0.n and so on), or a machine with more memory",
                bytes(need(n)),
                bytes(available)
            );
            Err(Failure::new(71, line))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_numbers() {
        assert!(check(1_000_000, Some(need(1_000_000))).is_ok() && check(u64::MAX, None).is_ok());
        let failure = check(1 << 31, Some(8 << 30)).unwrap_err();
        let text = failure.render(false);
        assert!(failure.code == 71 && text.contains("2147483648 particles need 1000.00 GiB"), "{text}");
        assert!(text.contains("8.00 GiB are free"), "{text}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_tells_its_memory() {
        assert!(available().is_some_and(|a| a > 1 << 20));
    }

    #[test]
    fn control_groups_of_both_versions_are_limits() {
        let root = tempfile::tempdir().unwrap();
        let group = |name: &str, files: &[(&str, &str)]| {
            std::fs::create_dir_all(root.path().join(name)).unwrap();
            files.iter().for_each(|(f, text)| std::fs::write(root.path().join(name).join(f), text).unwrap());
        };
        assert_eq!(in_groups("0::/\n3:cpu:/x\n", root.path()), None);
        group("job", &[("memory.max", "1000\n"), ("memory.current", "700\n"), ("memory.stat", "inactive_file 100\n")]);
        group("job/step", &[("memory.max", "max\n"), ("memory.current", "5\n")]);
        assert_eq!(in_groups("0::/job/step\n", root.path()), Some(400));
        group("memory/a", &[("memory.limit_in_bytes", "500\n"), ("memory.usage_in_bytes", "480\n")]);
        assert_eq!(in_groups("4:cpu,memory:/a\n0::/job/step\n", root.path()), Some(20));
        assert_eq!(in_groups("4:memory:/gone\n0::/job\n", root.path()), Some(400));
        // More than the limit can be taken for a moment.
        group("memory/a", &[("memory.usage_in_bytes", "600\n")]);
        assert_eq!(in_groups("4:memory:/a\n", root.path()), Some(0));
    }
}
