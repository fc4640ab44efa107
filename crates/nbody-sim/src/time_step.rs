//! `time.dt = "auto"`: one fixed step for the whole run, from the largest acceleration at its start.

use fmm_core::StageTimes;
use fmm_core::forces::Forces;

use crate::failure::Failure;
use crate::initial::Initial;
use crate::messages::number;
use crate::scenario::Scenario;

/// The scenario with its step chosen: dt = η √(ε/a), a the largest acceleration, made shorter until the shortest
/// interval of the scenario is 2^i 5^j steps. Decimal intervals then have decimal steps, whose times are exact.
///
/// Also returns what a user should know of the choice. A scenario with a given step comes back as it is.
///
/// # Errors
/// Those of the sum of the forces.
pub fn with_step(scenario: Scenario, initial: &Initial) -> Result<(Scenario, Option<String>), Failure> {
    let Some(eta) = scenario.auto_step else { return Ok((scenario, None)) };
    let wrong = |e: fmm_core::Error| {
        let text = scenario.refused(&e).unwrap_or_else(|| e.to_string());
        Failure::new(65, format!("initial particles: {text}"))
    };
    // The run itself reports the device.
    let forces = Forces { short_range: None, exclusions: vec![], ..scenario.forces() };
    let (settings, plane) = (&scenario.settings, scenario.log_kernel());
    let mut store = fmm::store(scenario.device, settings, plane, initial.len(), forces, &mut |_| {})?;
    let particles = initial.particles(scenario.law, scenario.signed_constant());
    store.upload(&particles).map_err(wrong)?;
    store.forces(&mut StageTimes::default()).map_err(wrong)?;
    let (_, field) = store.field().map_err(wrong)?;
    let size = |(c, e): (&f64, &[f64; 3])| c.abs() * e.iter().map(|e| e * e).sum::<f64>().sqrt();
    let largest = particles.coupling.iter().zip(&field).map(size).fold(0.0, f64::max);
    let wanted = eta * (scenario.softening_length() / largest).sqrt();
    // Nothing moves: the interval itself is a step.
    let parts = if largest > 0.0 { (scenario.clock.dt / wanted).ceil() } else { 1.0 };
    if parts.is_nan() || parts > 1e12 {
        let line = format!(
            "time.dt = \"auto\" gives {wanted:e}, {parts:e} steps between outputs; give a larger softening, or a \
             number for time.dt"
        );
        return Err(Failure::new(65, line));
    }
    let chosen = scenario.with_steps_divided(smooth(parts as u64));
    let warning = format!(
        "time.dt = \"auto\" gives {}, from the largest acceleration at the start, {largest:.4e}. \
         The step stays as it is, which keeps the leapfrog symplectic: where the particles will come closer \
         together than they start, set a smaller time.eta or time.dt",
        number(chosen.clock.dt)
    );
    Ok((chosen, Some(warning)))
}

/// The smallest 2^i 5^j that is at least `n`.
fn smooth(n: u64) -> u64 {
    let fives = (0..=17).map(|j| 5u64.pow(j));
    fives.map(|f| f * n.div_ceil(f).next_power_of_two()).min().unwrap_or(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::initial::no_hdf5;
    use crate::scenario::Scenario;

    #[test]
    fn smooth_numbers() {
        let expected = [(1, 1), (3, 4), (5, 5), (6, 8), (9, 10), (11, 16), (17, 20), (33, 40), (81, 100), (101, 125)];
        expected.into_iter().for_each(|(n, s)| assert_eq!(smooth(n), s, "{n}"));
    }

    #[test]
    fn the_step_follows_from_the_acceleration_and_divides_the_intervals() {
        // Two unit masses at the distance 1 with a Plummer softening ε: a = (1 + ε²)^(−3/2).
        let text = "[force]\nsoftening = { kernel = 'plummer', length = 0.01 }\n[[particles]]\nmodel = 'kepler'\n\
                    [time]\ndt = 'auto'\neta = 0.2\nend = 3\n[output]\nevery = 0.3\ndiagnostics_every = 0.1\n";
        let scenario =
            Scenario::parse("a.toml", text.into(), None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
        let initial = Initial::of(&scenario, no_hdf5).unwrap();
        let (chosen, warning) = with_step(scenario, &initial).unwrap();
        assert!(warning.unwrap().contains("gives 0.02,"));
        // η √(ε/a) = 0.0200, and 0.1 = 5.0 steps of it: 5 would be too few by the ε².
        assert_eq!(chosen.clock.dt, 0.0200_f64.min(0.1 / 5.0));
        assert_eq!((chosen.steps, chosen.snapshot_every, chosen.diagnostics_every), (150, 15, 5));
        assert_eq!((chosen.auto_step, chosen.clock.time(chosen.snapshot_every)), (None, 0.3));
        // And the resolved scenario says the step.
        let again = Scenario::parse("b.toml", chosen.resolved(None, 2), None, &[])
            .unwrap_or_else(|p| panic!("{}", p.render(false)));
        assert_eq!((again.clock, again.steps), (chosen.clock, 150));
    }
}
