//! What a checkpoint holds of what moves: particles, or a flow on a grid.

use std::borrow::Cow;
use std::ops::Range;

use fmm_core::grid::Block;
use hdf5::Group;
use nbody_sim::files::rows::{Rows, pieces};
use nbody_sim::files::snapshot::{Field, Float, Layout, check_values};
use ndarray::ArrayView2;
use sha2::{Digest, Sha256};

use super::super::FileError;
use super::super::hdf::{Reader, put, put_rows};

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
    /// Vorticity times volume of vortex particles in space, `[N]`.
    pub vorticity: Option<Vec<[f64; 3]>>,
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
            vorticity: reader.vectors(group, "Vorticity", n)?,
        }))
    }
}

/// What not all particles have.
const MORE: [Field; 2] = [Field::Charge, Field::Vorticity];

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

impl Rows for Particles {
    fn count(&self) -> usize {
        self.id.len()
    }

    fn has(&self, field: Field) -> bool {
        field == Field::Id || self.values(field).is_some()
    }

    fn ids(&self, rows: Range<usize>) -> Cow<'_, [u64]> {
        Cow::Borrowed(&self.id[rows])
    }

    fn floats(&self, field: Field, rows: Range<usize>) -> Cow<'_, [f64]> {
        let values = self.values(field).expect("a field that checkpoints have");
        Cow::Borrowed(&values[rows.start * field.width()..rows.end * field.width()])
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        let mut wanted = Field::ALL.into_iter().filter(|&f| f != Field::Id && layout.wants(f));
        wanted.try_for_each(|field| {
            let values = self.values(field).ok_or_else(|| format!("there is no {} to write", field.name()))?;
            check_values(&self.id, field, values)
        })
    }
}

impl Particles {
    fn values(&self, field: Field) -> Option<&[f64]> {
        match field {
            Field::Position => Some(self.position.as_flattened()),
            Field::Velocity => Some(self.velocity.as_flattened()),
            Field::Acceleration => Some(self.acceleration.as_flattened()),
            Field::Mass => Some(&self.mass),
            Field::Charge => self.charge.as_deref(),
            Field::Vorticity => self.vorticity.as_ref().map(|v| v.as_flattened()),
            Field::Id | Field::Potential | Field::ForceError => None,
        }
    }
}

/// What a checkpoint can be written of.
pub trait Stored {
    /// What is to be written.
    fn contents(&self) -> Contents<'_>;
}

impl Stored for State {
    fn contents(&self) -> Contents<'_> {
        match self {
            State::Particles(particles) => Contents::Particles(particles),
            State::Flow(flow) => Contents::Flow(flow),
        }
    }
}

impl Stored for &dyn Rows {
    fn contents(&self) -> Contents<'_> {
        Contents::Particles(*self)
    }
}

/// A state as it is written: the particles may be anywhere, and are looked at piece by piece.
pub enum Contents<'a> {
    /// Particles with positions, velocities, accelerations and masses, and charges or vorticity where they have any.
    Particles(&'a dyn Rows),
    /// A flow on a grid.
    Flow(&'a Flow),
}

impl Contents<'_> {
    /// The version of the layout of a file that holds it.
    pub(super) fn format(&self, has_run_id: bool) -> i64 {
        match self {
            Contents::Particles(_) if !has_run_id => 1,
            Contents::Particles(_) => 2,
            Contents::Flow(f) if f.has_levels() => LATEST,
            Contents::Flow(_) => FLOWS,
        }
    }

    /// An upper bound of its size in a file, in bytes.
    pub(super) fn estimate(&self) -> usize {
        match self {
            Contents::Particles(p) => p.count() * (8 + 14 * 8),
            Contents::Flow(f) => f.blocks.len() * 16 + f.vorticity.len() * 24,
        }
    }

    pub(super) fn fill(&self, group: &Group) -> hdf5::Result<()> {
        match self {
            Contents::Particles(p) => {
                put_rows(group, "ParticleIDs", (p.count(), 1), true, |rows| p.ids(rows))?;
                let fields = [Field::Mass, Field::Position, Field::Velocity, Field::Acceleration];
                fields.into_iter().try_for_each(|field| put_field(group, *p, field))
            }
            Contents::Flow(f) => {
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
            Contents::Particles(p) => MORE.into_iter().filter(|&f| p.has(f)).try_for_each(|f| put_field(group, *p, f)),
            Contents::Flow(_) => Ok(()),
        }
    }

    /// What keeps it from being written.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Contents::Particles(p) => {
                let mut fields = vec![Field::Velocity, Field::Acceleration];
                fields.extend(MORE.into_iter().filter(|&f| p.has(f)));
                p.check(&Layout { fields, precision: Float::F64 })
            }
            Contents::Flow(f) => {
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
            Contents::Particles(p) if p.has(Field::Vorticity) => 3,
            Contents::Particles(p) => u8::from(p.has(Field::Charge)),
            Contents::Flow(_) => 2,
        }
    }

    /// Hashes all arrays, each preceded by its length.
    pub(super) fn hash(&self, hash: &mut Sha256) {
        match self {
            Contents::Particles(p) => {
                hash.update((p.count() as u64).to_le_bytes());
                pieces(p.count()).for_each(|rows| add(hash, p.ids(rows).iter().map(|v| v.to_le_bytes())));
                let always = [Field::Position, Field::Velocity, Field::Acceleration, Field::Mass, Field::Charge];
                // What came later is hashed where it is there alone: files of older versions keep their digests.
                for field in always.into_iter().chain(Some(Field::Vorticity).filter(|&f| p.has(f))) {
                    let there = p.has(field);
                    let numbers = if there { p.count() * field.width() } else { 0 };
                    hash.update((numbers as u64).to_le_bytes());
                    for rows in pieces(p.count()).filter(|_| there) {
                        add(hash, p.floats(field, rows).iter().map(|v| v.to_le_bytes()));
                    }
                }
            }
            Contents::Flow(f) => {
                let values = f.vorticity.as_flattened();
                hash.update((3 * f.blocks.len() as u64).to_le_bytes());
                add(hash, f.blocks.iter().flat_map(|b| b.index).map(|v| u64::from(v).to_le_bytes()));
                if f.has_levels() {
                    hash.update((f.blocks.len() as u64).to_le_bytes());
                    add(hash, f.levels().map(|v| v.to_le_bytes()));
                }
                hash.update((values.len() as u64).to_le_bytes());
                add(hash, values.iter().map(|v| v.to_le_bytes()));
            }
        }
    }
}

/// A field by the name that it has in snapshots.
fn put_field(group: &Group, particles: &dyn Rows, field: Field) -> hdf5::Result<()> {
    let shape = (particles.count(), field.width());
    put_rows(group, field.names().1, shape, field.width() == 1, |rows| particles.floats(field, rows))
}

/// Hashes numbers in blocks: one call for each number would be slow.
fn add(hash: &mut Sha256, mut numbers: impl Iterator<Item = [u8; 8]>) {
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
