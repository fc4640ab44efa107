//! Particles at one time, and what of them a file holds.

use std::borrow::Cow;

use super::run_id::RunId;

/// Sizes of the units of a snapshot in CGS; all 1 where the units have no meaning outside the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units {
    /// The unit of length in cm.
    pub length_cm: f64,
    /// The unit of mass in g.
    pub mass_g: f64,
    /// The unit of velocity in cm/s.
    pub velocity_cm_per_s: f64,
}

impl std::fmt::Display for Units {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} cm, {} g and {} cm/s", self.length_cm, self.mass_g, self.velocity_cm_per_s)
    }
}

impl Default for Units {
    fn default() -> Self {
        Units { length_cm: 1.0, mass_g: 1.0, velocity_cm_per_s: 1.0 }
    }
}

/// The particles at one time. N rows everywhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// Time, in the unit of length over the unit of velocity.
    pub time: f64,
    /// Number of the step.
    pub step: u64,
    /// A number for each particle, `[N]`, each different.
    pub id: Vec<u64>,
    /// Positions, `[N]` of (x, y, z); z = 0 in two dimensions.
    pub position: Vec<[f64; 3]>,
    /// Velocities, `[N]`; empty if a file has none.
    pub velocity: Vec<[f64; 3]>,
    /// Masses, `[N]`.
    pub mass: Vec<f64>,
    /// Charges, `[N]`.
    pub charge: Option<Vec<f64>>,
    /// Potential per unit of mass (or charge), `[N]`.
    pub potential: Option<Vec<f64>>,
    /// Accelerations, `[N]`.
    pub acceleration: Option<Vec<[f64; 3]>>,
    /// The estimated size of the error of the sum in each acceleration, `[N]`.
    pub force_error: Option<Vec<f64>>,
    /// Vorticity times volume of vortex particles in space, whose volumes are their masses, `[N]`.
    pub vorticity: Option<Vec<[f64; 3]>>,
    /// What the units are.
    pub units: Units,
    /// Side of the periodic box; 0 in open space.
    pub box_size: f64,
    /// Further numbers (energies …), kept as attributes of `/Diagnostics`.
    pub diagnostics: Vec<(String, f64)>,
    /// The run that it is of, where the file says so.
    pub run: Option<RunId>,
}

/// A quantity of each particle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Always written.
    Position,
    /// Velocities.
    Velocity,
    /// Always written.
    Mass,
    /// Always written.
    Id,
    /// Potential per unit of mass or charge.
    Potential,
    /// Accelerations.
    Acceleration,
    /// Charges.
    Charge,
    /// Estimated sizes of the errors of accelerations. Written where a scenario names it.
    ForceError,
    /// Vorticity times volume.
    Vorticity,
}

impl Field {
    /// All fields, in the order in which they are written.
    pub const ALL: [Field; 9] = [
        Field::Position,
        Field::Velocity,
        Field::Mass,
        Field::Id,
        Field::Potential,
        Field::Acceleration,
        Field::Charge,
        Field::ForceError,
        Field::Vorticity,
    ];

    /// How many numbers each particle has of it.
    pub const fn width(self) -> usize {
        if matches!(self, Field::Position | Field::Velocity | Field::Acceleration | Field::Vorticity) { 3 } else { 1 }
    }

    /// The name in scenarios.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// The names in scenarios, in `/PartType1` and in `/VTKHDF/PointData`.
    pub const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Field::Position => ("position", "Coordinates", ""),
            Field::Velocity => ("velocity", "Velocities", "velocity"),
            Field::Mass => ("mass", "Masses", "mass"),
            Field::Id => ("id", "ParticleIDs", "id"),
            Field::Potential => ("potential", "Potential", "potential"),
            Field::Acceleration => ("acceleration", "Acceleration", "acceleration"),
            Field::Charge => ("charge", "Charges", "charge"),
            Field::ForceError => ("force_error", "ForceError", "force_error"),
            Field::Vorticity => ("vorticity", "Vorticity", "vorticity"),
        }
    }
}

/// Floating-point numbers in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Float {
    /// Half the size; 7 digits.
    #[default]
    F32,
    /// As the run holds them.
    F64,
}

/// What of a snapshot is written, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Fields in addition to position, mass and id, which are always written.
    pub fields: Vec<Field>,
    /// Of all floating-point arrays.
    pub precision: Float,
}

impl Layout {
    /// Whether a field is written.
    pub fn wants(&self, field: Field) -> bool {
        matches!(field, Field::Position | Field::Mass | Field::Id) || self.fields.contains(&field)
    }
}

/// Checks that a field has the values of particles with these ids, and that all are numbers.
///
/// # Errors
/// What is wrong.
pub fn check_values(id: &[u64], field: Field, values: &[f64]) -> Result<(), String> {
    let (name, width) = (field.name(), field.width());
    if values.len() != id.len() * width {
        return Err(format!("{name} has {} rows for {} ids", values.len() / width, id.len()));
    }
    match values.iter().position(|v| !v.is_finite()) {
        Some(i) => Err(format!("{name} of particle {} is {}", id[i / width], values[i])),
        None => Ok(()),
    }
}

impl Snapshot {
    /// The fields that there are, in the order in which they are written.
    pub fn fields(&self) -> Vec<Field> {
        let there = |f: Field| self.floats(f).is_none_or(|(v, width)| v.len() == self.id.len() * width);
        let absent = |f: Field| f != Field::Id && self.floats(f).is_none();
        Field::ALL.into_iter().filter(|&f| there(f) && !absent(f)).collect()
    }

    /// The values of a field as a flat list with its number of components; `None` where there are none.
    pub fn floats(&self, field: Field) -> Option<(&[f64], usize)> {
        match field {
            Field::Position => Some((self.position.as_flattened(), 3)),
            Field::Velocity => Some((self.velocity.as_flattened(), 3)),
            Field::Mass => Some((&self.mass, 1)),
            Field::Potential => self.potential.as_deref().map(|v| (v, 1)),
            Field::Acceleration => self.acceleration.as_ref().map(|v| (v.as_flattened(), 3)),
            Field::Charge => self.charge.as_deref().map(|v| (v, 1)),
            Field::ForceError => self.force_error.as_deref().map(|v| (v, 1)),
            Field::Vorticity => self.vorticity.as_ref().map(|v| (v.as_flattened(), 3)),
            Field::Id => None,
        }
    }

    /// Checks that the snapshot can be written as asked.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, layout: &Layout) -> Result<(), String> {
        let n = self.id.len();
        if u32::try_from(n).is_err() {
            return Err(format!("{n} particles are more than the {} that one file can number", u32::MAX));
        }
        if !self.time.is_finite() {
            return Err(format!("the time is {}", self.time));
        }
        let limit = if layout.precision == Float::F32 { f64::from(f32::MAX) } else { f64::MAX };
        for field in Field::ALL.into_iter().filter(|&f| f != Field::Id && layout.wants(f)) {
            let name = field.name();
            let (values, width) = self.floats(field).ok_or_else(|| format!("there is no {name} to write"))?;
            check_values(&self.id, field, values)?;
            if let Some(i) = values.iter().position(|v| v.abs() > limit) {
                let what = format!("{name} of particle {} is {:e}", self.id[i / width], values[i]);
                return Err(format!("{what}, too large for f32; write f64 (output.precision = \"f64\")"));
            }
        }
        Ok(())
    }

    /// The same particles, sorted by id.
    pub fn in_id_order(&self) -> Cow<'_, Snapshot> {
        if self.id.is_sorted() {
            return Cow::Borrowed(self);
        }
        let mut order: Vec<usize> = (0..self.id.len()).collect();
        order.sort_unstable_by_key(|&i| self.id[i]);
        fn pick<T: Copy>(order: &[usize], from: &[T]) -> Vec<T> {
            // Fields that are not written may have any length; they are not needed.
            if from.len() == order.len() { order.iter().map(|&i| from[i]).collect() } else { vec![] }
        }
        Cow::Owned(Snapshot {
            id: pick(&order, &self.id),
            position: pick(&order, &self.position),
            velocity: pick(&order, &self.velocity),
            mass: pick(&order, &self.mass),
            charge: self.charge.as_ref().map(|v| pick(&order, v)),
            potential: self.potential.as_ref().map(|v| pick(&order, v)),
            acceleration: self.acceleration.as_ref().map(|v| pick(&order, v)),
            force_error: self.force_error.as_ref().map(|v| pick(&order, v)),
            vorticity: self.vorticity.as_ref().map(|v| pick(&order, v)),
            diagnostics: self.diagnostics.clone(),
            ..*self
        })
    }
}
