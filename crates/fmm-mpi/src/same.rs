//! Whether all ranks are the same program with the same options.

use fmm_core::comm::Comm;
use nbody_sim::failure::Failure;
use nbody_sim::ranks::agreed;
use sha2::{Digest, Sha256};

/// Refuses ranks that differ from the first.
///
/// # Errors
/// 65, on all ranks; the message is on the first that differs.
pub fn check(comm: &dyn Comm) -> Result<(), Failure> {
    let program = std::env::current_exe().and_then(std::fs::read).map_or(vec![], |program| digest(&program));
    let options: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    for (what, own) in [("program", program), ("options", digest(options.join("\0").as_bytes()))] {
        let all = comm.all_gather(&own);
        let same = all[comm.rank()] == all[0];
        let differs = || {
            Failure::new(65, format!("rank {}: {what} other than those of rank 0; start all ranks alike", comm.rank()))
        };
        agreed(comm, if same { Ok(()) } else { Err(differs()) })?;
    }
    Ok(())
}

fn digest(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}
