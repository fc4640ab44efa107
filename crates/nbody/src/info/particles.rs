//! Facts on the particles of one time.

use fmm_core::math::blocked_sums;
use serde_json::{Map, json};

use super::facts::Facts;
use crate::convert::source::system_with;
use crate::files::particles::Loaded;
use crate::files::snapshot::{Float, Snapshot};
use crate::messages::{rounded, short};
use crate::units::Dimension;

/// Shares of the mass whose radii are reported.
const SHARES: [f64; 3] = [0.1, 0.5, 0.9];

/// Adds what is to be said of a snapshot.
pub fn add(facts: &mut Facts, loaded: &Loaded) {
    let s = &loaded.snapshot;
    let system = system_with(&s.units);
    let unit = |d| system.map_or("", |u| u.unit(d));
    let with = |text: String, d: Dimension| format!("{text} {}", unit(d)).trim_end().to_string();
    let n = s.id.len();
    facts.add("particles", json!(n));
    facts.add_as("time", json!(s.time), with(short(s.time), Dimension::Time));
    facts.add("step", json!(s.step));
    let sizes = json!({
        "system": system.map(|u| u.name()),
        "length_cm": s.units.length_cm,
        "mass_g": s.units.mass_g,
        "velocity_cm_per_s": s.units.velocity_cm_per_s,
    });
    let name = match system.map(|u| u.name()) {
        Some("nbody") => "nbody: pure numbers".to_string(),
        Some(name) => {
            format!("{name}: {}, {}, {}", unit(Dimension::Length), unit(Dimension::Mass), unit(Dimension::Velocity))
        }
        None => format!("{:e} cm, {:e} g, {:e} cm/s", s.units.length_cm, s.units.mass_g, s.units.velocity_cm_per_s),
    };
    facts.add_as("units", sizes, name);
    let fields: Vec<&str> = s.fields().iter().map(|f| f.name()).collect();
    facts.add_as("fields", json!(fields), fields.join(", "));
    facts.add("precision", json!(if loaded.precision == Float::F32 { "f32" } else { "f64" }));
    let side =
        if s.box_size == 0.0 { "open".to_string() } else { format!("periodic, longest side {}", short(s.box_size)) };
    facts.add_as("box", json!(s.box_size), side);
    if n == 0 {
        return;
    }
    add_extent(facts, s, &with);
    add_energy(facts, s);
}

fn add_extent(facts: &mut Facts, s: &Snapshot, with: &dyn Fn(String, Dimension) -> String) {
    let (mut low, mut high) = (s.position[0], s.position[0]);
    for p in &s.position {
        for k in 0..3 {
            (low[k], high[k]) = (low[k].min(p[k]), high[k].max(p[k]));
        }
    }
    let axes: Vec<String> = ["x", "y", "z"]
        .iter()
        .enumerate()
        .map(|(k, a)| format!("{a} {} to {}", rounded(low[k]), rounded(high[k])))
        .collect();
    facts.add_as("extent", json!({ "low": low, "high": high }), with(axes.join(", "), Dimension::Length));
    let sums = blocked_sums(s.id.len(), |i| {
        let (m, [x, y, z]) = (s.mass[i], s.position[i]);
        [m, m * x, m * y, m * z, s.charge.as_ref().map_or(0.0, |q| q[i])]
    });
    let [mass, mx, my, mz, charge] = sums;
    facts.add_as("mass", json!(mass), with(rounded(mass), Dimension::Mass));
    if s.charge.is_some() {
        facts.add_as("charge", json!(charge), with(rounded(charge), Dimension::Charge));
    }
    if mass <= 0.0 {
        return;
    }
    let center = [mx / mass, my / mass, mz / mass];
    let text = center.map(rounded).join(" ");
    facts.add_as("center_of_mass", json!(center), with(text, Dimension::Length));
    let radii = mass_radii(s, center);
    let text: Vec<String> =
        radii.iter().zip(SHARES).map(|(r, share)| format!("{:.0} % within {}", 100.0 * share, rounded(*r))).collect();
    let object: Map<_, _> = radii.iter().zip(SHARES).map(|(r, f)| (format!("{:.0}", 100.0 * f), json!(r))).collect();
    let text = format!("{} of the center of mass", with(text.join(", "), Dimension::Length));
    facts.add_as("mass_radii", object.into(), text);
}

/// Distances from `center` within which lie the shares of the mass.
fn mass_radii(s: &Snapshot, center: [f64; 3]) -> [f64; SHARES.len()] {
    let distance = |p: &[f64; 3]| (0..3).map(|k| (p[k] - center[k]).powi(2)).sum::<f64>();
    let mut order: Vec<(f64, f64)> = s.position.iter().map(distance).zip(s.mass.iter().copied()).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = order.iter().map(|(_, m)| m).sum();
    let mut radii = [0.0; SHARES.len()];
    for (radius, share) in radii.iter_mut().zip(SHARES) {
        let mut sum = 0.0;
        // Rounding may leave the last share just short of the whole.
        let reached = order.iter().find(|(_, m)| {
            sum += m;
            sum >= share * total
        });
        *radius = reached.or(order.last()).map_or(0.0, |(r2, _)| r2.sqrt());
    }
    radii
}

/// Energies: those that the run noted, else from the arrays.
fn add_energy(facts: &mut Facts, s: &Snapshot) {
    let noted = |name: &str| s.diagnostics.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
    if let Some(hamiltonian) = noted("hamiltonian") {
        // Vortices have no energy of motion: what a run of them conserves is this.
        let error = noted("hamiltonian_error");
        let text = error.map_or(String::new(), |e| format!(", dH/H0 {e:.2e}"));
        let object = json!({ "value": hamiltonian, "error": error });
        facts.add_as("hamiltonian", object, format!("{hamiltonian:.9e}{text}"));
        return;
    }
    if s.vorticity.is_some() {
        // That of the flow, which vortices in space make around them; their own velocities say nothing of it.
        let Some(energy) = noted("energy") else { return };
        let error = noted("energy_error");
        let text = error.map_or(String::new(), |e| format!(", dE/E0 {e:.2e}"));
        facts.add_as("energy", json!({ "value": energy, "error": error }), format!("{energy:.9e}{text}"));
        return;
    }
    let n = s.id.len();
    let kinetic = noted("kinetic").or_else(|| {
        let square = |i: usize| s.velocity[i].iter().map(|v| v * v).sum::<f64>();
        (s.velocity.len() == n).then(|| blocked_sums(n, |i| [0.5 * s.mass[i] * square(i)])[0])
    });
    let potential = noted("potential").or_else(|| {
        let phi = s.potential.as_ref()?;
        let strength = s.charge.as_ref().unwrap_or(&s.mass);
        Some(blocked_sums(n, |i| [0.5 * strength[i] * phi[i]])[0])
    });
    let object = json!({
        "kinetic": kinetic,
        "potential": potential,
        "total": kinetic.zip(potential).map(|(t, w)| t + w),
        "error": noted("energy_error"),
    });
    let mut text = vec![];
    for (name, value) in [("kinetic", kinetic), ("potential", potential)] {
        text.push(value.map_or(format!("{name} unknown"), |v| format!("{name} {v:.9e}")));
    }
    if let Some((t, w)) = kinetic.zip(potential) {
        text.push(format!("total {:.9e}", t + w));
    }
    if let Some(e) = noted("energy_error") {
        text.push(format!("dE/E0 {e:.2e}"));
    }
    facts.add_as("energy", object, text.join(", "));
    if let Some(q) = noted("virial_ratio") {
        facts.add_as("virial_ratio", json!(q), short(q));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radii_hold_their_share() {
        let s = Snapshot {
            id: (0..10).collect(),
            position: (0..10).map(|i| [f64::from(9 - i), 0.0, 0.0]).collect(),
            mass: vec![1.0; 10],
            ..Snapshot::default()
        };
        assert_eq!(mass_radii(&s, [0.0; 3]), [0.0, 4.0, 8.0]);
    }
}
