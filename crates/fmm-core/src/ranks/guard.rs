//! The guard over ranks: direct sums of all particles at a few targets, block by block in the caller's order.

use super::home::Home;
use crate::comm::{Comm, exchanged, gathered};
use crate::cpu::direct::{joined, parts};
use crate::cpu::points::Summed;
use crate::guard::{Drawn, Look, Norms, Sample, judged, split};
use crate::{Precision, Settings, Softening};

/// The field of all particles at `places`, the same on all ranks, and the square of its largest term, in the units of all.
fn direct(
    comm: &dyn Comm,
    precision: Precision,
    softening: Softening,
    home: &Home,
    places: &[[f64; 3]],
) -> Vec<[f64; 4]> {
    let units = home.units(comm);
    let blocks = parts(precision, units, softening, home.position, home.strength, places);
    // Each rank adds up the blocks of all particles at some of the places.
    let size = comm.size();
    let range = |rank: usize| places.len() * rank / size..places.len() * (rank + 1) / size;
    let to: Vec<Vec<[f64; 4]>> =
        (0..size).map(|rank| blocks.iter().flat_map(|block| block[range(rank)].iter().copied()).collect()).collect();
    let all: Vec<[f64; 4]> = exchanged(comm, &to).concat();
    let own = range(comm.rank()).len();
    let sum = |k: usize| joined(all.iter().skip(k).step_by(own).copied());
    gathered(comm, &(0..own).map(sum).collect::<Vec<_>>())
}

/// The errors of `sums` at a sample of all targets.
pub(super) fn errors(comm: &dyn Comm, settings: &Settings, home: &Home, sums: &Summed, look: Look) -> Norms {
    let prediction = sums.prediction_on(comm);
    let rms = prediction.rms();
    let sample = prediction.sample(settings.tolerance, look);
    let row = |d: &Drawn| {
        let ([x, y, z], [a, b, c]) = (home.position[d.target], sums.field[d.target]);
        [d.weight, f64::from(u8::from(d.certain)), x, y, z, a, b, c]
    };
    let rows: Vec<[f64; 8]> = gathered(comm, &sample.targets().iter().map(row).collect::<Vec<_>>());
    let places: Vec<[f64; 3]> = rows.iter().map(|&[_, _, x, y, z, ..]| [x, y, z]).collect();
    let units = home.units(comm);
    let rms = units.into_scaled([rms, 0.0, 0.0])[0];
    let drawn = |row: &[f64; 8]| Drawn { target: 0, weight: row[0], certain: row[1] > 0.0 };
    let sample = Sample::drawn(rows.iter().map(drawn).collect(), sample.certain());
    judged(settings, sums.epsilon, |precision| {
        let exact = direct(comm, precision, settings.softening, home, &places).into_iter().map(split);
        let found = rows.iter().map(|&[.., a, b, c]| units.into_scaled([a, b, c]));
        sample.weigh(exact, found, Some(rms))
    })
}

/// Sums the targets again directly whose predicted errors are the largest, at most so many. Returns whether there are any.
pub(super) fn repair(
    comm: &dyn Comm,
    (settings, home): (&Settings, &Home),
    sums: &mut Summed,
    norms: Norms,
    most: usize,
) -> bool {
    let worst = sums.prediction_on(comm).worst(norms, settings.tolerance, most);
    let own: Vec<[f64; 3]> = worst.iter().map(|&i| home.position[i as usize]).collect();
    let [before, all] = crate::comm::before(comm, own.len());
    if all == 0 {
        return false;
    }
    let units = home.units(comm);
    let exact = direct(comm, Precision::F64, settings.softening.simplified(), home, &gathered(comm, &own));
    for (&i, [x, y, z, _]) in worst.iter().zip(&exact[before..]) {
        sums.field[i as usize] = [*x, *y, *z].map(|e| units.into_plain(e));
        sums.error[i as usize] = 0.0;
    }
    true
}
