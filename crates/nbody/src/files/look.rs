//! What the process does that [`probe`](super::probe) starts: under limits, it goes through the structure
//! of an HDF5 file as a reader will (groups, attributes, types, filters, the index of the chunks, the first
//! row of each array), and says nothing.

use std::path::Path;

use hdf5::{Dataset, Group};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::hdf::{Member, Reader, read_rows};

/// Seconds of a processor, and bytes of data, that the structure of a file may take.
const SECONDS: u64 = 20;
const BYTES: u64 = 1 << 30;
/// Groups in groups, and objects and attributes in all; more are no file of particles.
const DEEPEST: usize = 32;
const MOST: usize = 10_000;

/// Looks at a file for another process, which hears how this one ends.
pub fn look(path: &Path) {
    let data = BYTES + data_at_start();
    for (what, most) in [(Resource::Cpu, SECONDS), (Resource::Data, data), (Resource::Core, 0), (Resource::Fsize, 0)] {
        // A lower limit may be in force already.
        let _ = setrlimit(what, Rlimit { current: Some(most), maximum: Some(most) });
    }
    // Errors that a reader finds itself are left to the reader, which reports them.
    if let Ok(reader) = Reader::open(path)
        && let Ok(root) = reader.need_group("/")
    {
        walk(&reader, &root, 0, &mut 0);
    }
}

/// Bytes of data that this process has reserved before it looks at anything; 0 where the system does not say.
fn data_at_start() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).map_or(0, |kib| 1024 * kib)
}

fn walk(reader: &Reader, group: &Group, depth: usize, seen: &mut usize) {
    let Ok(members) = reader.members(group) else { return };
    for name in reader.attr_names(group).unwrap_or_default() {
        *seen += 1;
        if *seen > MOST {
            return;
        }
        let _ = reader.attr(group, &name);
    }
    for Member { name, inside } in members {
        *seen += 1;
        if depth > DEEPEST || *seen > MOST {
            return;
        }
        if inside.is_err() {
            continue;
        }
        if let Ok(inner) = group.group(&name) {
            walk(reader, &inner, depth + 1, seen);
        } else if let Ok(dataset) = group.dataset(&name)
            && reader.verify_inside(&dataset).is_ok()
        {
            touch(reader, &dataset);
        }
    }
}

fn touch(reader: &Reader, dataset: &Dataset) {
    let Ok(kind) = dataset.dtype().and_then(|t| t.to_descriptor()) else { return };
    if reader.verify_storage(dataset, kind.size() as u64).is_err() {
        return;
    }
    let _ = match dataset.shape().first() {
        None => dataset.read_raw::<f64>().map(drop),
        Some(0) => Ok(()),
        Some(_) => read_rows::<f64>(dataset, 0, 1).map(drop),
    };
}
