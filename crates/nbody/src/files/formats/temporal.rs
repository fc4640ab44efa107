//! A whole run in one file, for ParaView 5.12 and newer: temporal VTKHDF of type PolyData, version 2.0.
//!
//! The particles of all steps lie one after the other in the same arrays; `Steps` says where each begins. Every step
//! has its own vertex cells, because the number of particles may change. `/Nbody`, which VTK does not look at, keeps
//! what VTKHDF has no place for.

use std::path::{Path, PathBuf};

use hdf5::types::FixedAscii;
use hdf5::{Dataset, File, Group};

use crate::files::FileError;
use crate::files::hdf::{self, Reader, put, put_attr, put_attrs, put_group, reserve, write_rows};
use crate::files::particles::Loaded;
use crate::files::snapshot::{Field, Float, Layout, Snapshot, Units};

/// Rows of a chunk, at most.
const CHUNK: usize = 65536;
/// The four kinds of cells of PolyData; particles are vertices.
const CELLS: [&str; 4] = ["Vertices", "Lines", "Polygons", "Strips"];

/// What must be known of all steps before the first is written.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Numbers of particles, one for each step.
    pub counts: Vec<usize>,
    /// Times, one for each step.
    pub times: Vec<f64>,
    /// Fields that every step has.
    pub fields: Vec<Field>,
    /// Of all floating-point arrays.
    pub precision: Float,
}

impl Plan {
    fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Chunks that begin where steps begin, if all have the same number of particles.
    fn chunk(&self) -> usize {
        let most = self.counts.iter().copied().max().unwrap_or(0).max(1);
        most.div_ceil(most.div_ceil(CHUNK))
    }
}

/// Writes the steps that `load` gives, one at a time in memory; returns the size in bytes.
///
/// # Errors
/// What `load` returns; [`FileError::Unwritable`] for a step that is not as planned or not finite; [`FileError::Io`],
/// [`FileError::Hdf5`]. An old file of that name is then untouched.
pub fn write(
    path: &Path,
    plan: &Plan,
    mut load: impl FnMut(usize) -> Result<Snapshot, FileError>,
) -> Result<u64, FileError> {
    let estimate = (plan.total() * (8 + 16 + 12 * 8) + plan.counts.len() * 1024) as u64 + (1 << 20);
    let mut failed = None;
    let written = hdf::write_file(path, estimate, |file| {
        let mut arrays = Arrays::create(file, plan)?;
        for step in 0..plan.counts.len() {
            let added = load(step).and_then(|s| {
                arrays.check(path, &s, plan.counts[step])?;
                Ok(s.in_id_order().into_owned())
            });
            match added {
                Ok(s) => arrays.add(&s)?,
                Err(e) => {
                    failed = Some(e);
                    return Err("a step could not be read".into());
                }
            }
        }
        arrays.finish(file, plan)
    });
    match failed {
        Some(e) => Err(e),
        None => written,
    }
}

/// The arrays under way.
struct Arrays {
    layout: Layout,
    floats: Vec<(Field, Dataset)>,
    id: Dataset,
    connectivity: Dataset,
    offsets: Dataset,
    /// Particles so far.
    rows: usize,
    steps: Vec<i64>,
    diagnostics: Vec<(String, Vec<f64>)>,
    /// Units and box of the first step.
    first: Option<(Units, f64)>,
}

impl Arrays {
    fn create(file: &File, plan: &Plan) -> hdf5::Result<Self> {
        let (total, steps, chunk) = (plan.total(), plan.counts.len(), plan.chunk());
        let vtk = put_group(file, "VTKHDF")?;
        put_attrs(&vtk, "Version", &[2i64, 0])?;
        put_attr(&vtk, "Type", FixedAscii::<8>::from_ascii("PolyData").map_err(|e| e.to_string())?)?;
        let counts: Vec<i64> = plan.counts.iter().map(|&n| n as i64).collect();
        put(&vtk, "NumberOfPoints", &counts[..], true)?;
        for kind in &CELLS[1..] {
            let group = put_group(&vtk, kind)?;
            put(&group, "NumberOfCells", &vec![0i64; steps][..], true)?;
            put(&group, "NumberOfConnectivityIds", &vec![0i64; steps][..], true)?;
            put(&group, "Offsets", &vec![0i64; steps][..], true)?;
            put(&group, "Connectivity", &[0i64; 0][..], true)?;
        }
        let vertices = put_group(&vtk, CELLS[0])?;
        put(&vertices, "NumberOfCells", &counts[..], true)?;
        put(&vertices, "NumberOfConnectivityIds", &counts[..], true)?;
        let connectivity = reserve::<i64>(&vertices, "Connectivity", (total, 1), chunk, true)?;
        let offsets = reserve::<i64>(&vertices, "Offsets", (total + steps, 1), chunk, true)?;
        let points = put_group(&vtk, "PointData")?;
        let mut floats = vec![];
        for &field in plan.fields.iter().filter(|&&f| f != Field::Id) {
            let (group, name) = place(&vtk, &points, field);
            let shape = (total, field.width());
            let compress = matches!(field, Field::Mass | Field::Charge);
            let array = match plan.precision {
                Float::F32 => reserve::<f32>(group, name, shape, chunk, compress)?,
                Float::F64 => reserve::<f64>(group, name, shape, chunk, compress)?,
            };
            floats.push((field, array));
        }
        let id = reserve::<u64>(&points, Field::Id.names().2, (total, 1), chunk, true)?;
        let layout = Layout { fields: plan.fields.clone(), precision: plan.precision };
        Ok(Arrays {
            layout,
            floats,
            id,
            connectivity,
            offsets,
            rows: 0,
            steps: vec![],
            diagnostics: vec![],
            first: None,
        })
    }

    fn check(&self, path: &Path, s: &Snapshot, count: usize) -> Result<(), FileError> {
        let wrong = |what: String| FileError::unwritable(path, format!("at time {}: {what}", s.time));
        if s.id.len() != count {
            return Err(wrong(format!("{} particles instead of {count}", s.id.len())));
        }
        if let Some((units, _)) = self.first.filter(|(units, _)| *units != s.units) {
            return Err(wrong(format!("units {:?} instead of {units:?}", s.units)));
        }
        s.check(&self.layout).map_err(wrong)
    }

    fn add(&mut self, s: &Snapshot) -> hdf5::Result<()> {
        let n = s.id.len();
        for (field, array) in &self.floats {
            let Some((values, _)) = s.floats(*field) else { continue };
            match self.layout.precision {
                Float::F64 => write_rows(array, self.rows, values)?,
                Float::F32 => {
                    let single: Vec<f32> = values.iter().map(|&v| v as f32).collect();
                    write_rows(array, self.rows, &single)?;
                }
            }
        }
        write_rows(&self.id, self.rows, &s.id)?;
        let counting: Vec<i64> = (0..=n as i64).collect();
        write_rows(&self.connectivity, self.rows, &counting[..n])?;
        // Each step has one offset more than cells.
        write_rows(&self.offsets, self.rows + self.steps.len(), &counting)?;
        for (name, value) in &s.diagnostics {
            let known = self.diagnostics.iter_mut().find(|(n, _)| n == name);
            match known {
                Some((_, list)) if list.len() == self.steps.len() => list.push(*value),
                None if self.steps.is_empty() => self.diagnostics.push((name.clone(), vec![*value])),
                // A number that some steps lack is not a series.
                _ => {}
            }
        }
        self.first.get_or_insert((s.units, s.box_size));
        self.steps.push(s.step as i64);
        self.rows += n;
        Ok(())
    }

    fn finish(self, file: &File, plan: &Plan) -> hdf5::Result<()> {
        let steps = plan.counts.len();
        let starts: Vec<i64> =
            plan.counts.iter().scan(0, |at, &n| Some(std::mem::replace(at, *at + n as i64))).collect();
        let numbers: Vec<i64> = (0..steps as i64).collect();
        let vtk = file.group("VTKHDF")?;
        let group = put_group(&vtk, "Steps")?;
        put_attr(&group, "NSteps", steps as i64)?;
        put(&group, "Values", &plan.times[..], false)?;
        put(&group, "PartOffsets", &numbers[..], true)?;
        put(&group, "NumberOfParts", &vec![1i64; steps][..], true)?;
        put(&group, "PointOffsets", &starts[..], true)?;
        // Vertices begin where the points do; there are no lines, polygons and strips.
        let cells: Vec<[i64; 4]> = starts.iter().map(|&s| [s, 0, 0, 0]).collect();
        for name in ["CellOffsets", "ConnectivityIdOffsets"] {
            put(&group, name, ndarray::ArrayView2::from(&cells[..]), true)?;
        }
        let offsets = put_group(&group, "PointDataOffsets")?;
        for field in plan.fields.iter().filter(|&&f| f != Field::Position) {
            put(&offsets, field.names().2, &starts[..], true)?;
        }
        let own = put_group(file, "Nbody")?;
        let (units, box_size) = self.first.unwrap_or_default();
        put_attr(&own, "BoxSize", box_size)?;
        put_attr(&own, "UnitLength_in_cm", units.length_cm)?;
        put_attr(&own, "UnitMass_in_g", units.mass_g)?;
        put_attr(&own, "UnitVelocity_in_cm_per_s", units.velocity_cm_per_s)?;
        put(&own, "Step", &self.steps[..], true)?;
        let diagnostics = put_group(&own, "Diagnostics")?;
        let whole = self.diagnostics.iter().filter(|(_, v)| v.len() == steps);
        whole.into_iter().try_for_each(|(name, values)| put(&diagnostics, name, &values[..], false))
    }
}

/// Where a field lies and what it is called.
fn place<'a>(vtk: &'a Group, points: &'a Group, field: Field) -> (&'a Group, &'static str) {
    if field == Field::Position { (vtk, "Points") } else { (points, field.names().2) }
}

/// A file with steps, opened.
pub struct Temporal {
    path: PathBuf,
    reader: Reader,
    times: Vec<f64>,
    /// First particle of each step.
    starts: Vec<usize>,
    counts: Vec<usize>,
    total: usize,
}

impl Temporal {
    /// Opens a file; `None` where it is HDF5 but no VTKHDF with steps.
    ///
    /// # Errors
    /// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] where it is not HDF5 or its steps contradict
    /// its arrays.
    pub fn open(path: &Path) -> Result<Option<Self>, FileError> {
        let reader = Reader::open(path)?;
        let Some(group) = reader.group("/VTKHDF/Steps")? else { return Ok(None) };
        let steps = reader.need_attr(&group, "NSteps")? as usize;
        let vtk = reader.need_group("/VTKHDF")?;
        let whole = |group: &Group, name: &str| -> Result<Vec<usize>, FileError> {
            let list = reader.integers(group, name, steps)?;
            let list = list.ok_or_else(|| reader.error(format!("{}/{name} is missing", group.name())))?;
            Ok(list.into_iter().map(|v| usize::try_from(v).unwrap_or(usize::MAX)).collect())
        };
        let (starts, counts) = (whole(&group, "PointOffsets")?, whole(&vtk, "NumberOfPoints")?);
        let times = reader.scalars(&group, "Values", steps)?;
        let times = times.ok_or_else(|| reader.error("/VTKHDF/Steps/Values is missing"))?;
        let total = reader.length(&vtk, "Points")?.ok_or_else(|| reader.error("/VTKHDF/Points is missing"))?;
        let beyond = |i: &usize| starts[*i].checked_add(counts[*i]).is_none_or(|end| end > total);
        if let Some(i) = (0..steps).find(beyond) {
            return Err(reader.error(format!("step {i} lies beyond the {total} points that there are")));
        }
        Ok(Some(Temporal { path: path.to_owned(), reader, times, starts, counts, total }))
    }

    /// Times of the steps.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Particles of each step.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Reads a step.
    ///
    /// # Errors
    /// [`FileError::Data`] for damage, for values that are not finite and where masses are missing.
    pub fn load(&self, step: usize) -> Result<Loaded, FileError> {
        let reader = &self.reader;
        let (vtk, points) = (reader.need_group("/VTKHDF")?, reader.need_group("/VTKHDF/PointData")?);
        let range = self.starts[step]..self.starts[step] + self.counts[step];
        let floats = |field: Field| {
            let (group, name) = place(&vtk, &points, field);
            reader.rows(group, name, (self.total, field.width()), range.clone())
        };
        let vectors = |field| -> Result<Option<Vec<[f64; 3]>>, FileError> {
            Ok(floats(field)?.map(|v| v.as_chunks::<3>().0.to_vec()))
        };
        let missing = |what: &str| FileError::data(&self.path, format!("{what} is missing"));
        let ids = reader.integers(&points, Field::Id.names().2, self.total)?;
        let mut s = Snapshot {
            time: self.times[step],
            step: step as u64,
            id: ids.map_or_else(|| (0..range.len() as u64).collect(), |v| v[range.clone()].to_vec()),
            position: vectors(Field::Position)?.ok_or_else(|| missing("/VTKHDF/Points"))?,
            velocity: vectors(Field::Velocity)?.unwrap_or_default(),
            mass: floats(Field::Mass)?.ok_or_else(|| missing("/VTKHDF/PointData/mass"))?,
            charge: floats(Field::Charge)?,
            potential: floats(Field::Potential)?,
            acceleration: vectors(Field::Acceleration)?,
            force_error: floats(Field::ForceError)?,
            vorticity: vectors(Field::Vorticity)?,
            ..Snapshot::default()
        };
        if let Some(own) = reader.group("/Nbody")? {
            self.take_own(&own, &mut s, step)?;
        }
        let precision = if reader.is_single(&vtk, "Points")? { Float::F32 } else { Float::F64 };
        Ok(Loaded { snapshot: s, precision, dropped: vec![] })
    }

    fn take_own(&self, own: &Group, s: &mut Snapshot, step: usize) -> Result<(), FileError> {
        let reader = &self.reader;
        let steps = self.times.len();
        s.box_size = reader.need_attr(own, "BoxSize")?;
        s.units = Units {
            length_cm: reader.need_attr(own, "UnitLength_in_cm")?,
            mass_g: reader.need_attr(own, "UnitMass_in_g")?,
            velocity_cm_per_s: reader.need_attr(own, "UnitVelocity_in_cm_per_s")?,
        };
        if let Some(list) = reader.integers(own, "Step", steps)? {
            s.step = list[step];
        }
        let Some(group) = reader.group("/Nbody/Diagnostics")? else { return Ok(()) };
        let names =
            group.member_names().map_err(|e| reader.error(format!("/Nbody/Diagnostics cannot be read ({e})")))?;
        for name in names {
            if let Some(value) = reader.scalars(&group, &name, steps)? {
                s.diagnostics.push((name, value[step]));
            }
        }
        Ok(())
    }
}
