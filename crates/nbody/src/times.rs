//! Times as people read them: in the scenario's unit, and in years to Gyr where that unit is pc/(km/s) or kpc/(km/s).

use crate::messages::short;
use crate::units::{Dimension, System};

/// Years of 365.25 days in seconds, with their names, longest first.
const YEARS: [(&str, f64); 4] = [("Gyr", 3.155_76e16), ("Myr", 3.155_76e13), ("kyr", 3.155_76e10), ("yr", 3.155_76e7)];

/// The unit in which the times of a run are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeUnit {
    /// Its name; empty for pure numbers.
    pub name: &'static str,
    /// What a time of the scenario is multiplied by.
    pub factor: f64,
}

impl TimeUnit {
    /// The unit for times up to `longest`, in the scenario's units.
    pub fn of(system: System, longest: f64) -> Self {
        let own = TimeUnit { name: system.unit(Dimension::Time), factor: 1.0 };
        let (System::Astro | System::Galactic, Some(seconds)) = (system, system.in_si(Dimension::Time)) else {
            return own;
        };
        // Half a Gyr reads better as 500 Myr.
        let fits = |unit: &&(&str, f64)| longest.abs() * seconds >= unit.1;
        let (name, size) = YEARS.iter().find(fits).unwrap_or(&YEARS[1]);
        TimeUnit { name, factor: seconds / size }
    }

    /// A time of the scenario with this unit, to four digits.
    pub fn text(&self, time: f64) -> String {
        format!("{} {}", short(time * self.factor), self.name).trim_end().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_galaxies_are_shown_in_years() {
        let time = |text| System::Galactic.convert(text, Dimension::Time).unwrap();
        let shown = |end, at| TimeUnit::of(System::Galactic, time(end)).text(time(at));
        assert_eq!(shown("500 Myr", "5 Myr"), "5 Myr");
        assert_eq!(shown("500 Myr", "500 Myr"), "500 Myr");
        assert_eq!(shown("13.8 Gyr", "0.25 Gyr"), "0.25 Gyr");
        assert_eq!(TimeUnit::of(System::Astro, 0.0).text(0.0), "0 Myr");
        assert_eq!(TimeUnit::of(System::Astro, 1.0).text(1.0), "977.8 kyr");
        assert_eq!(TimeUnit::of(System::Solar, 100.0).text(12.5), "12.5 yr");
        assert_eq!(TimeUnit::of(System::Nbody, 1.0).text(0.866_025_403_784_438_6), "0.866");
    }
}
