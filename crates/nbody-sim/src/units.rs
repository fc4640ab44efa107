//! Systems of units: constants, and conversion of quantities given with a unit.
//!
//! Exact by definition (SI 2019, IAU 2012 B2, IAU 2015 B2): au = 149 597 870 700 m, pc = 648 000/π au,
//! e = 1.602176634e-19 C, N_A = 6.02214076e23 per mol, the Julian year of 365.25 days.
//! Measured: G = 6.67430e-11 m³/(kg s²), ε₀ = 8.8541878188e-12 F/m, u = 1.66053906892e-27 kg (CODATA 2022).
//! The Sun: nominal GM = 1.3271244e20 m³/s² (IAU 2015 B3); in the solar system of units Gauss's constant,
//! k = 0.01720209895, so that GM = k² au³/d² = 39.47692642137302 au³/yr².

use std::f64::consts::PI;

use crate::files::snapshot::Units;
use crate::messages::nearest;

/// A system of units: `units.system` in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// G = 1 and k_e = 1; lengths, masses and times are pure numbers.
    Nbody,
    /// m, kg, s, C.
    Si,
    /// pc, solar masses, km/s; the unit of time is pc/(km/s).
    Astro,
    /// au, solar masses, years of 365.25 days.
    Solar,
    /// nm, u, ps, e.
    Md,
    /// kpc, solar masses, km/s; the unit of time is kpc/(km/s), 0.978 Gyr.
    Galactic,
}

/// What a quantity measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// Time.
    Time,
    /// Length.
    Length,
    /// Mass.
    Mass,
    /// Velocity.
    Velocity,
    /// Charge.
    Charge,
    /// Energy.
    Energy,
}

impl Dimension {
    /// With its article, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Dimension::Time => "a time",
            Dimension::Length => "a length",
            Dimension::Mass => "a mass",
            Dimension::Velocity => "a velocity",
            Dimension::Charge => "a charge",
            Dimension::Energy => "an energy",
        }
    }

    const ALL: [Dimension; 6] = [
        Dimension::Time,
        Dimension::Length,
        Dimension::Mass,
        Dimension::Velocity,
        Dimension::Charge,
        Dimension::Energy,
    ];

    /// Why `unit` is no unit of this dimension, with the nearest that is.
    fn unknown(self, unit: &str) -> String {
        let names: Vec<&str> = self.units().iter().map(|(n, _)| *n).collect();
        let other = Dimension::ALL.into_iter().find(|d| d.units().iter().any(|(n, _)| *n == unit));
        match (unit, other) {
            (_, Some(other)) => {
                format!("\"{unit}\" is a unit of {}", other.name().trim_start_matches("a ").trim_start_matches("an "))
            }
            ("A" | "Å" | "ang", _) => "an angstrom is written \"angstrom\" or \"Å\"".to_string(),
            _ => match names.iter().find(|n| n.eq_ignore_ascii_case(unit)).copied().or_else(|| nearest(unit, &names)) {
                Some(near) => format!("unknown unit \"{unit}\"; did you mean \"{near}\"?"),
                None => format!("unknown unit \"{unit}\""),
            },
        }
    }

    /// The units that a string may name, each with itself, as a choice of a scenario.
    pub fn names(self) -> Vec<(&'static str, &'static str)> {
        self.units().iter().map(|u| (u.0, u.0)).collect()
    }

    /// Units that a string may name, in SI.
    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Dimension::Time => &[
                ("fs", 1e-15),
                ("ps", 1e-12),
                ("ns", 1e-9),
                ("us", 1e-6),
                ("ms", 1e-3),
                ("s", 1.0),
                ("min", 60.0),
                ("h", 3600.0),
                ("d", DAY),
                ("yr", YEAR),
                ("kyr", 1e3 * YEAR),
                ("Myr", 1e6 * YEAR),
                ("Gyr", 1e9 * YEAR),
            ],
            Dimension::Length => &[
                ("pm", 1e-12),
                ("angstrom", 1e-10),
                ("Å", 1e-10),
                ("nm", 1e-9),
                ("um", 1e-6),
                ("mm", 1e-3),
                ("cm", 1e-2),
                ("m", 1.0),
                ("km", 1e3),
                ("au", AU),
                ("pc", PARSEC),
                ("kpc", 1e3 * PARSEC),
                ("Mpc", 1e6 * PARSEC),
            ],
            Dimension::Mass => &[("u", DALTON), ("g/mol", 1e-3 / AVOGADRO), ("g", 1e-3), ("kg", 1.0), ("Msun", SUN)],
            Dimension::Velocity => &[
                ("m/s", 1.0),
                ("km/s", 1e3),
                ("au/yr", AU / YEAR),
                ("pc/Myr", PARSEC / (1e6 * YEAR)),
                ("kpc/Gyr", PARSEC / (1e6 * YEAR)),
                ("angstrom/ps", 1e2),
                ("angstrom/fs", 1e5),
                ("nm/ps", 1e3),
            ],
            Dimension::Charge => &[("e", ELEMENTARY_CHARGE), ("C", 1.0)],
            Dimension::Energy => {
                &[("kJ/mol", 1e3 / AVOGADRO), ("kcal/mol", 4184.0 / AVOGADRO), ("eV", ELEMENTARY_CHARGE), ("J", 1.0)]
            }
        }
    }
}

const AU: f64 = 149_597_870_700.0;
const PARSEC: f64 = 648_000.0 / PI * AU;
const DAY: f64 = 86_400.0;
const YEAR: f64 = 365.25 * DAY;
const GRAVITY: f64 = 6.67430e-11;
const ELECTRIC: f64 = 1.0 / (4.0 * PI * 8.8541878188e-12);
const AVOGADRO: f64 = 6.02214076e23;
const DALTON: f64 = 1.66053906892e-27;
const ELEMENTARY_CHARGE: f64 = 1.602176634e-19;
const SUN_GM: f64 = 1.3271244e20;
const SUN: f64 = SUN_GM / GRAVITY;

/// The number and the unit of a text such as `0.25 d`; the unit starts at the first letter that is
/// not the exponent of the number.
pub fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let unit = text.char_indices().find(|&(i, c)| {
        let exponent =
            matches!(c, 'e' | 'E') && text[i + 1..].starts_with(|d: char| d.is_ascii_digit() || d == '-' || d == '+');
        c.is_alphabetic() && !exponent
    });
    unit.map_or((text, ""), |(i, _)| (text[..i].trim(), text[i..].trim()))
}

impl System {
    /// Names in scenarios.
    pub const NAMES: [(&'static str, System); 6] = [
        ("nbody", System::Nbody),
        ("si", System::Si),
        ("astro", System::Astro),
        ("solar", System::Solar),
        ("md", System::Md),
        ("galactic", System::Galactic),
    ];

    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        System::NAMES[self as usize].0
    }

    /// Newton's constant G in these units; `None` where the system is not meant for gravity.
    pub fn gravity(self) -> Option<f64> {
        match self {
            System::Nbody => Some(1.0),
            System::Si => Some(GRAVITY),
            System::Astro => Some(SUN_GM / PARSEC / 1e6),
            System::Solar => Some(39.47692642137302),
            System::Galactic => Some(SUN_GM / PARSEC / 1e9),
            System::Md => None,
        }
    }

    /// k_B: temperatures are in kelvin in `md` and `si`, energies elsewhere.
    pub fn boltzmann(self) -> f64 {
        match self {
            // kJ/mol/K.
            System::Md => 0.008_314_462_618_153_24,
            System::Si => 1.380649e-23,
            System::Nbody | System::Astro | System::Solar | System::Galactic => 1.0,
        }
    }

    /// Whether temperatures are in kelvin; elsewhere they are energies.
    pub fn has_kelvin(self) -> bool {
        matches!(self, System::Md | System::Si)
    }

    /// Coulomb's constant k_e in these units; `None` where the system is not meant for charges.
    pub fn electric(self) -> Option<f64> {
        match self {
            System::Nbody => Some(1.0),
            System::Si => Some(ELECTRIC),
            // kJ nm/(mol e²), and 1 kJ/mol = 1 u nm²/ps².
            System::Md => Some(138.935457644),
            System::Astro | System::Solar | System::Galactic => None,
        }
    }

    /// One unit of the dimension in SI; `None` for pure numbers.
    pub fn in_si(self, dimension: Dimension) -> Option<f64> {
        let (length, mass, time, charge) = match self {
            System::Nbody => return None,
            System::Si => (1.0, 1.0, 1.0, 1.0),
            System::Astro => (PARSEC, SUN, PARSEC / 1e3, 1.0),
            System::Solar => (AU, SUN, YEAR, 1.0),
            System::Galactic => (1e3 * PARSEC, SUN, PARSEC, 1.0),
            System::Md => (1e-9, DALTON, 1e-12, ELEMENTARY_CHARGE),
        };
        Some(match dimension {
            Dimension::Length => length,
            Dimension::Mass => mass,
            Dimension::Time => time,
            Dimension::Velocity if matches!(self, System::Astro | System::Galactic) => 1e3,
            Dimension::Velocity => length / time,
            Dimension::Charge => charge,
            Dimension::Energy => mass * (length / time).powi(2),
        })
    }

    /// As written in snapshots; all 1 for pure numbers.
    pub fn snapshot(self) -> Units {
        let si = |d| self.in_si(d);
        match (si(Dimension::Length), si(Dimension::Mass), si(Dimension::Velocity)) {
            (Some(m), Some(kg), Some(speed)) => {
                Units { length_cm: 1e2 * m, mass_g: 1e3 * kg, velocity_cm_per_s: 1e2 * speed }
            }
            _ => Units::default(),
        }
    }

    /// What the numbers of the dimension are called.
    pub fn unit(self, dimension: Dimension) -> &'static str {
        let [length, mass, time, velocity] = match self {
            System::Nbody => ["", "", "", ""],
            System::Si => ["m", "kg", "s", "m/s"],
            System::Astro => ["pc", "Msun", "pc/(km/s)", "km/s"],
            System::Solar => ["au", "Msun", "yr", "au/yr"],
            System::Galactic => ["kpc", "Msun", "kpc/(km/s)", "km/s"],
            System::Md => ["nm", "u", "ps", "nm/ps"],
        };
        match dimension {
            Dimension::Length => length,
            Dimension::Mass => mass,
            Dimension::Time => time,
            Dimension::Velocity => velocity,
            Dimension::Charge if self == System::Md => "e",
            Dimension::Charge if self == System::Nbody => "",
            Dimension::Charge => "C",
            Dimension::Energy => match self {
                System::Nbody => "",
                System::Si => "J",
                System::Md => "kJ/mol",
                System::Astro | System::Galactic => "Msun (km/s)²",
                System::Solar => "Msun (au/yr)²",
            },
        }
    }

    /// Converts `"0.25 d"` to a number in this system.
    ///
    /// # Errors
    /// Why it cannot be, in a few words.
    pub fn convert(self, text: &str, dimension: Dimension) -> Result<f64, String> {
        let (number, unit) = split(text);
        let value: f64 = number.parse().map_err(|_| match number {
            "" => "it begins with no number".to_string(),
            _ => format!("\"{number}\" is not a number"),
        })?;
        if unit.is_empty() {
            return Err("a number in the scenario's units is written without quotes".into());
        }
        let known = dimension.units();
        let Some((_, scale)) = known.iter().find(|(n, _)| *n == unit) else {
            return Err(dimension.unknown(unit));
        };
        let Some(own) = self.in_si(dimension) else {
            return Err("units.system = \"nbody\" has no physical units".into());
        };
        if unit == self.unit(dimension) {
            return Ok(value);
        }
        // Ratios of decimal units are whole numbers that their quotient in binary misses by a rounding.
        let (ratio, inverse) = (scale / own, own / scale);
        let whole = |x: f64| x >= 0.5 && (x - x.round()).abs() < 1e-12 * x;
        Ok(match () {
            () if whole(ratio) => value * ratio.round(),
            () if whole(inverse) => value / inverse.round(),
            () => value * scale / own,
        })
    }

    /// The way out of a quantity that cannot be read.
    pub fn quantity_help(self, dimension: Dimension) -> String {
        match self {
            System::Nbody => {
                "give a pure number, or choose units.system = \"si\", \"galactic\", \"astro\", \"solar\" or \"md\""
                    .to_string()
            }
            _ => {
                // The unit nearest in size to the system's own.
                let own = self.in_si(dimension).unwrap_or(1.0);
                let far = |unit: &&(&str, f64)| (unit.1 / own).ln().abs();
                let example = dimension.units().iter().min_by(|a, b| far(a).total_cmp(&far(b))).map_or("", |u| u.0);
                let known: Vec<&str> = dimension.units().iter().map(|(n, _)| *n).collect();
                format!(
                    "give a number in {}, or one with a unit such as \"2.5 {example}\"; known: {}",
                    self.unit(dimension),
                    known.join(", ")
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a / b - 1.0).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn constants_have_their_published_values() {
        close(System::Solar.gravity().unwrap(), (0.01720209895f64 * 365.25).powi(2), 1e-15);
        close(System::Astro.gravity().unwrap(), 4.300917270e-3, 1e-9);
        close(System::Galactic.gravity().unwrap(), 4.300917270e-6, 1e-9);
        close(System::Si.electric().unwrap(), 8.9875517862e9, 1e-10);
        close(PARSEC, 3.085677581491367e16, 1e-15);
        // k_e e² N_A in kJ nm/mol.
        let md = ELECTRIC * ELEMENTARY_CHARGE.powi(2) * 6.02214076e23 * 1e-3 / 1e-9;
        close(System::Md.electric().unwrap(), md, 1e-9);
    }

    #[test]
    fn quantities_convert() {
        assert_eq!(System::Solar.convert("3652.5 d", Dimension::Time), Ok(10.0));
        assert_eq!(System::Solar.convert("0.25d", Dimension::Time), Ok(1.0 / 1461.0));
        assert_eq!(System::Md.convert("2 fs", Dimension::Time), Ok(0.002));
        assert_eq!(System::Md.convert("1 um", Dimension::Length), Ok(1000.0));
        assert_eq!(System::Astro.convert("1.5e3 km/s", Dimension::Velocity), Ok(1500.0));
        assert_eq!(System::Galactic.convert("1500 pc", Dimension::Length), Ok(1.5));
        close(System::Galactic.convert("1 Gyr", Dimension::Time).unwrap(), 3.15576 / 3.085677581491367, 1e-12);
        close(System::Md.convert("18.015 g/mol", Dimension::Mass).unwrap(), 18.015, 1e-8);
        assert_eq!(System::Md.convert("12.5Å", Dimension::Length), Ok(1.25));
        close(System::Astro.convert("1 Myr", Dimension::Time).unwrap(), 3.15576 / 3.085677581491367, 1e-15);
        // CODATA 2022: 1 eV is 96.485 332 12 kJ/mol.
        close(System::Md.convert("1 eV", Dimension::Energy).unwrap(), 96.48533212, 2e-9);
        assert_eq!(System::Md.convert("1 kJ/mol", Dimension::Energy), Ok(1.0));
        for bad in ["1 fortnight", "abc d", "", "3"] {
            assert!(System::Solar.convert(bad, Dimension::Time).is_err(), "{bad}");
        }
        for (bad, dimension, why) in [
            ("0.5 kpc", Dimension::Time, "\"kpc\" is a unit of length"),
            ("30A", Dimension::Length, "an angstrom is written \"angstrom\" or \"Å\""),
            ("5 gyr", Dimension::Time, "unknown unit \"gyr\"; did you mean \"Gyr\"?"),
            ("5 Myrs", Dimension::Time, "did you mean \"Myr\"?"),
        ] {
            let text = System::Galactic.convert(bad, dimension).unwrap_err();
            assert!(text.contains(why), "{text}");
        }
        assert!(System::Nbody.convert("1 d", Dimension::Time).is_err());
    }
}
