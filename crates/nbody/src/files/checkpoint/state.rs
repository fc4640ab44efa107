//! What a checkpoint holds of what moves: particles, or a flow on a grid.

use fmm_core::grid::Block;
use hdf5::Group;
use ndarray::ArrayView2;
use sha2::{Digest, Sha256};

use super::super::FileError;
use super::super::hdf::{Reader, put};

/// Cells of a block of a flow.
const CELLS: usize = fmm_core::grid::CELLS;

/// The deepest level of a block.
const DEEPEST: u8 = fmm_core::grid::blocks::DEEPEST;

/// What moves.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Particles.
    Particles(Particles),
    /// A flow on a grid.
    Flow(Flow),
}

impl Default for State {
    fn default() -> Self {
        State::Particles(Particles::default())
    }
}

/// Particles, N rows in id order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Particles {
    /// A number for each particle, `[N]`.
    pub id: Vec<u64>,
    /// Positions, `[N]` of (x, y, z).
    pub position: Vec<[f64; 3]>,
    /// Velocities, `[N]`.
    pub velocity: Vec<[f64; 3]>,
    /// Accelerations at these positions, `[N]`, so that going on need not compute them anew.
    pub acceleration: Vec<[f64; 3]>,
    /// Masses, `[N]`.
    pub mass: Vec<f64>,
    /// Charges, `[N]`.
    pub charge: Option<Vec<f64>>,
}

/// A flow before its step is solved: solving takes away what of ω is no curl, so that going on from later would do so twice.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// The blocks of 16³ cells, `[B]`, in the order of the grid.
    pub blocks: Vec<Block>,
    /// ω of their cells, `[4096 B]`, block after block.
    pub vorticity: Vec<[f64; 3]>,
}

impl State {
    /// The word for it in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            State::Particles(_) => "particles",
            State::Flow(_) => "a flow on a grid",
        }
    }

    /// The version of the layout of a file that holds it.
    pub(super) fn format(&self, has_run_id: bool) -> i64 {
        match self {
            State::Particles(_) if !has_run_id => 1,
            State::Particles(_) => 2,
            State::Flow(f) if f.has_levels() => LATEST,
            State::Flow(_) => FLOWS,
        }
    }

    /// An upper bound of its size in a file, in bytes.
    pub(super) fn estimate(&self) -> usize {
        match self {
            State::Particles(p) => p.id.len() * (8 + 11 * 8),
            State::Flow(f) => f.blocks.len() * 16 + f.vorticity.len() * 24,
        }
    }

    pub(super) fn fill(&self, group: &Group) -> hdf5::Result<()> {
        match self {
            State::Particles(p) => {
                put(group, "ParticleIDs", &p.id[..], true)?;
                put(group, "Masses", &p.mass[..], true)?;
                for (name, rows) in
                    [("Coordinates", &p.position), ("Velocities", &p.velocity), ("Acceleration", &p.acceleration)]
                {
                    put(group, name, ArrayView2::from(&rows[..]), false)?;
                }
                Ok(())
            }
            State::Flow(f) => {
                let blocks: Vec<[u64; 3]> = f.blocks.iter().map(|b| b.index.map(u64::from)).collect();
                put(group, "Blocks", ArrayView2::from(&blocks[..]), true)?;
                if f.has_levels() {
                    put(group, "Levels", &f.levels().collect::<Vec<_>>()[..], true)?;
                }
                put(group, "Vorticity", ArrayView2::from(&f.vorticity[..]), false)
            }
        }
    }

    /// What comes after all else: files of equal states have equal bytes, those of older versions too.
    pub(super) fn fill_last(&self, group: &Group) -> hdf5::Result<()> {
        match self {
            State::Particles(Particles { charge: Some(q), .. }) => put(group, "Charges", &q[..], true),
            _ => Ok(()),
        }
    }

    pub(super) fn read(reader: &Reader, group: &Group, format: f64) -> Result<State, FileError> {
        let missing = |name: &str| reader.error(format!("/Checkpoint/{name} is missing"));
        let count = |name: &str| reader.length(group, name)?.ok_or_else(|| missing(name));
        let vectors = |name, n| reader.vectors(group, name, n)?.ok_or_else(|| missing(name));
        if format >= FLOWS as f64 {
            let n = count("Blocks")?;
            let numbers = reader.rows(group, "Blocks", (n, 3), 0..n)?.ok_or_else(|| missing("Blocks"))?;
            if numbers.iter().any(|v| !(0.0..=f64::from(u32::MAX)).contains(v)) {
                return Err(reader.error("/Checkpoint/Blocks holds what is no place of a block; the file is damaged"));
            }
            let levels = match format == LATEST as f64 {
                true => reader.integers(group, "Levels", n)?.ok_or_else(|| missing("Levels"))?,
                false => vec![0; n],
            };
            if levels.iter().any(|l| *l > u64::from(DEEPEST)) {
                return Err(reader.error("/Checkpoint/Levels holds what is no level of a block; the file is damaged"));
            }
            let block =
                |(b, &level): (&[f64], &u64)| Block { level: level as u8, index: [b[0], b[1], b[2]].map(|v| v as u32) };
            let blocks = numbers.chunks_exact(3).zip(&levels).map(block).collect();
            return Ok(State::Flow(Flow { blocks, vorticity: vectors("Vorticity", n.saturating_mul(CELLS))? }));
        }
        let n = count("ParticleIDs")?;
        Ok(State::Particles(Particles {
            id: reader.integers(group, "ParticleIDs", n)?.ok_or_else(|| missing("ParticleIDs"))?,
            position: vectors("Coordinates", n)?,
            velocity: vectors("Velocities", n)?,
            acceleration: vectors("Acceleration", n)?,
            mass: reader.scalars(group, "Masses", n)?.ok_or_else(|| missing("Masses"))?,
            charge: reader.scalars(group, "Charges", n)?,
        }))
    }

    /// What keeps it from being written.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            State::Particles(p) => p.check(),
            State::Flow(f) => {
                let (cells, blocks) = (f.vorticity.len(), f.blocks.len());
                if cells != blocks * CELLS {
                    return Err(format!("vorticity has {cells} rows for {blocks} blocks of {CELLS} cells"));
                }
                match f.vorticity.as_flattened().iter().position(|v| !v.is_finite()) {
                    Some(i) => {
                        let (cell, value) = (i / 3, f.vorticity[i / 3][i % 3]);
                        Err(format!("vorticity of cell {cell} is {value}"))
                    }
                    None => Ok(()),
                }
            }
        }
    }

    /// What is hashed before all arrays.
    pub(super) fn tag(&self) -> u8 {
        match self {
            State::Particles(p) => u8::from(p.charge.is_some()),
            State::Flow(_) => 2,
        }
    }

    /// Hashes all arrays, each preceded by its length.
    pub(super) fn hash(&self, hash: &mut Sha256) {
        match self {
            State::Particles(p) => {
                update(hash, p.id.iter().map(|v| v.to_le_bytes()));
                for (_, values, _) in p.floats() {
                    update(hash, values.iter().map(|v| v.to_le_bytes()));
                }
            }
            State::Flow(f) => {
                let places: Vec<[u32; 3]> = f.blocks.iter().map(|b| b.index).collect();
                update(hash, places.as_flattened().iter().map(|&v| u64::from(v).to_le_bytes()));
                if f.has_levels() {
                    update(hash, f.levels().collect::<Vec<_>>().iter().map(|v| v.to_le_bytes()));
                }
                update(hash, f.vorticity.as_flattened().iter().map(|v| v.to_le_bytes()));
            }
        }
    }
}

/// Version of the layout of files with a flow on blocks of level 0; those of particles have 2, and 1 without a run id.
const FLOWS: i64 = 3;
/// Of those with a flow on blocks of several levels.
pub(super) const LATEST: i64 = 4;

impl Flow {
    fn levels(&self) -> impl Iterator<Item = u64> {
        self.blocks.iter().map(|b| u64::from(b.level))
    }

    fn has_levels(&self) -> bool {
        self.levels().any(|level| level > 0)
    }
}

impl Particles {
    /// The floating-point arrays with their names and numbers of components.
    fn floats(&self) -> [(&'static str, &[f64], usize); 5] {
        [
            ("position", self.position.as_flattened(), 3),
            ("velocity", self.velocity.as_flattened(), 3),
            ("acceleration", self.acceleration.as_flattened(), 3),
            ("mass", &self.mass, 1),
            ("charge", self.charge.as_deref().unwrap_or_default(), 1),
        ]
    }

    fn check(&self) -> Result<(), String> {
        let n = self.id.len();
        for (name, values, width) in self.floats() {
            if values.len() != n * width && !(name == "charge" && self.charge.is_none()) {
                return Err(format!("{name} has {} rows for {n} ids", values.len() / width));
            }
            if let Some(i) = values.iter().position(|v| !v.is_finite()) {
                return Err(format!("{name} of particle {} is {}", self.id[i / width], values[i]));
            }
        }
        Ok(())
    }
}

/// Hashes a list of numbers in blocks: one call for each number would be slow.
fn update(hash: &mut Sha256, mut numbers: impl ExactSizeIterator<Item = [u8; 8]>) {
    hash.update((numbers.len() as u64).to_le_bytes());
    let mut block = Vec::with_capacity(1 << 16);
    loop {
        block.clear();
        block.extend(numbers.by_ref().take(1 << 13).flatten());
        if block.is_empty() {
            return;
        }
        hash.update(&block);
    }
}
