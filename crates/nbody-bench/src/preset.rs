//! What a suite sweeps: a TOML file of `configs/`, one built in for each suite, and the options laid over it.

use std::path::Path;

use fmm_core::{Method, Settings, planar};
use serde::Deserialize;

use super::charges::Charges;
use super::norm::Norm;
use super::sets::Set;
use fmm::Kernel;
use nbody_sim::failure::Failure;
use nbody_sim::messages::number;

/// The keys of a preset. Suites ignore those that they do not sweep.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// What is summed: laplace (1/r, the usual), or log or harmonic in the plane.
    #[serde(default)]
    pub kernel: Option<String>,
    /// The largest number of particles, or the only one.
    pub n: f64,
    /// The smallest number of particles of a sweep.
    #[serde(default = "smallest")]
    pub smallest: f64,
    /// The smallest and the largest number alone.
    #[serde(default)]
    pub ends: bool,
    /// The numbers of a sweep, where they are not round: those from `smallest` to `n` count.
    #[serde(default, rename = "sizes")]
    pub listed: Vec<f64>,
    /// Relative errors asked for.
    pub tolerances: Vec<f64>,
    /// The error that the tolerance bounds: rms (rms and L2, the usual) or max.
    #[serde(default)]
    pub norm: Option<String>,
    /// Kinds of particle sets.
    #[serde(default)]
    pub sets: Vec<String>,
    /// What periodic boxes hold.
    #[serde(default)]
    pub boxes_with: Vec<String>,
    /// Fast methods, where a suite compares them: fmm, treecode.
    #[serde(default = "fmm")]
    pub methods: Vec<String>,
    /// Widths σ of the sets that have one; empty: the usual ones.
    #[serde(default)]
    pub sigmas: Vec<f64>,
    /// Boxes in the plane: N is then this number times the size of a leaf, which is full.
    #[serde(default)]
    pub boxes: Option<f64>,
    /// Orders of expansions.
    #[serde(default)]
    pub orders: Vec<f64>,
    /// Opening angles.
    #[serde(default)]
    pub thetas: Vec<f64>,
    /// Most particles in a leaf.
    #[serde(default)]
    pub leaves: Vec<f64>,
    /// Numbers of threads; empty: all cores.
    #[serde(default)]
    pub threads: Vec<f64>,
    /// Samples of each time.
    pub samples: f64,
    /// Seconds after which a case takes no further sample.
    pub budget: f64,
}

fn smallest() -> f64 {
    1e3
}

fn fmm() -> Vec<String> {
    vec![Method::Fmm.name().into()]
}

impl Preset {
    /// Reads a preset and checks every number.
    ///
    /// # Errors
    /// 65 with key, value and what is allowed.
    pub fn parse(name: &str, text: &str) -> Result<Self, Failure> {
        let bad = |e: toml::de::Error| Failure::new(65, format!("{name}: {}", e.to_string().trim_end()));
        let preset: Preset = toml::from_str(text).map_err(bad)?;
        preset.check(name)?;
        Ok(preset)
    }

    /// The preset in a file.
    ///
    /// # Errors
    /// 66 for a file that is not there, and those of [`parse`](Preset::parse).
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| Failure::new(66, format!("{name}: cannot read: {e}")))?;
        Preset::parse(&name, &text)
    }

    /// Checks every number against its range.
    ///
    /// # Errors
    /// 65 with key, value and what is allowed.
    pub fn check(&self, name: &str) -> Result<(), Failure> {
        let refuse = |key: &str, value: String, range: &str| {
            Err(Failure::new(65, format!("{name}: {key} = {value} is not allowed; allowed: {range}")))
        };
        let all = |key: &str, values: &[f64], whole: bool, [low, high]: [f64; 2], range: &str| match values
            .iter()
            .find(|&&v| !(low..=high).contains(&v) || (whole && v.fract() != 0.0))
        {
            Some(&bad) => refuse(key, number(bad), range),
            None => Ok(()),
        };
        all("n", &[self.n], true, [2.0, MOST], "a whole number from 2 to 4e9")?;
        all("smallest", &[self.smallest], true, [2.0, MOST], "a whole number from 2 to 4e9")?;
        all("sizes", &self.listed, true, [2.0, MOST], "whole numbers from 2 to 4e9")?;
        let tolerances = [Settings::TIGHTEST, 0.1];
        all("tolerances", &self.tolerances, false, tolerances, "1e-14 to 0.1")?;
        if let Some(kernel) = self.kernel.as_ref().filter(|k| !Preset::KERNELS.iter().any(|known| known.name() == **k))
        {
            return refuse("kernel", format!("{kernel:?}"), &Preset::KERNELS.map(Kernel::name).join(", "));
        }
        if let Some(norm) = self.norm.as_ref().filter(|n| Norm::named(n).is_none()) {
            return refuse("norm", format!("{norm:?}"), &Norm::ALL.map(Norm::name).join(", "));
        }
        let plane = self.kernel().plane().is_some();
        let (most, orders) = match plane {
            true => (planar::MAX_ORDER, "whole numbers from 1 to 60"),
            false => (Settings::MAX_ORDER, "whole numbers from 1 to 30"),
        };
        all("orders", &self.orders, true, [1.0, most as f64], orders)?;
        let (widest, thetas) = if plane { (0.8, "0.2 to 0.8 in the plane") } else { (1.0, "0.2 to 1") };
        all("thetas", &self.thetas, false, [0.2, widest], thetas)?;
        all("leaves", &self.leaves, true, [1.0, 1e6], "whole numbers from 1 to 1000000")?;
        all("sigmas", &self.sigmas, false, [1e-4, 1.0], "1e-4 to 1")?;
        if let Some(boxes) = self.boxes
            && !(plane && (1..=12).any(|level| boxes == 4f64.powi(level)))
        {
            return refuse("boxes", number(boxes), "powers of 4 from 4 to 4^12, in the plane");
        }
        all("threads", &self.threads, true, [1.0, 1024.0], "whole numbers from 1 to 1024")?;
        all("samples", &[self.samples], true, [1.0, 1000.0], "a whole number from 1 to 1000")?;
        all("budget", &[self.budget], false, [0.0, 86400.0], "0 to 86400 seconds")?;
        if let Some(bad) = self.sets.iter().find(|s| Set::named(s).is_none()) {
            return refuse("sets", format!("{bad:?}"), &Set::allowed());
        }
        if let Some(bad) = self.boxes_with.iter().find(|c| Charges::named(c).is_none()) {
            return refuse("boxes_with", format!("{bad:?}"), &Charges::allowed());
        }
        let fast = FAST.map(Method::name);
        if let Some(bad) = self.methods.iter().find(|m| !fast.contains(&&m[..])) {
            return refuse("methods", format!("{bad:?}"), &fast.join(", "));
        }
        let nothing = self.sets.is_empty() && self.boxes_with.is_empty();
        if self.tolerances.is_empty() || nothing {
            let key = if nothing { "sets" } else { "tolerances" };
            return refuse(key, "[]".into(), "at least one");
        }
        Ok(())
    }

    /// What can be measured.
    pub const KERNELS: [Kernel; 3] = [Kernel::Laplace, Kernel::Log, Kernel::Harmonic];

    /// What is summed.
    pub fn kernel(&self) -> Kernel {
        self.kernel.as_deref().and_then(|k| k.parse().ok()).unwrap_or(Kernel::Laplace)
    }

    /// The error that the tolerance bounds.
    pub fn norm(&self) -> Norm {
        self.norm.as_deref().and_then(Norm::named).unwrap_or(Norm::Rms)
    }

    /// What periodic boxes hold.
    pub fn charges(&self) -> Vec<Charges> {
        self.boxes_with.iter().filter_map(|name| Charges::named(name)).collect()
    }

    /// The fast methods of the kernel; there is no treecode in the plane.
    pub fn methods(&self) -> Vec<Method> {
        let plane = self.kernel().plane().is_some();
        let wanted = |m: &Method| self.methods.iter().any(|name| name == m.name());
        FAST.into_iter().filter(|m| wanted(m) && !(plane && *m == Method::Treecode)).collect()
    }

    /// Each size of a leaf with the number of particles, `n` or as many as fill all `boxes`.
    pub fn leaves(&self) -> Vec<(usize, usize)> {
        self.leaves.iter().map(|&leaf| (leaf as usize, self.boxes.map_or(self.n, |b| b * leaf) as usize)).collect()
    }

    /// The listed sizes from `smallest` to `n`; if there is none, 1, 2 and 5 times the powers of ten from `smallest` to `n`, and `n` itself,
    /// of which with `ends` the first and the last.
    pub fn sizes(&self) -> Vec<usize> {
        let inside = self.listed.iter().filter(|s| (self.smallest..=self.n).contains(*s));
        let inside: Vec<usize> = inside.map(|&s| s as usize).collect();
        if !inside.is_empty() {
            return inside;
        }
        let all = (0..10).flat_map(|k| [1.0, 2.0, 5.0].map(|d| d * 10f64.powi(k)));
        let mut sizes: Vec<usize> = all.filter(|&s| self.smallest <= s && s < self.n).map(|s| s as usize).collect();
        sizes.push(self.n as usize);
        if self.ends && sizes.len() > 2 {
            sizes.drain(1..sizes.len() - 1);
        }
        sizes
    }
}

/// Methods that are not direct.
const FAST: [Method; 2] = [Method::Treecode, Method::Fmm];
/// The largest number of particles.
const MOST: f64 = 4e9;

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "n = 5e4\ntolerances = [1e-3]\nsets = [\"uniform\"]\nsamples = 5\nbudget = 2\n";

    #[test]
    fn sizes_are_round() {
        let preset = Preset::parse("p", GOOD).unwrap();
        assert_eq!(preset.sizes(), [1000, 2000, 5000, 10_000, 20_000, 50_000]);
        assert_eq!(Preset { ends: true, ..preset.clone() }.sizes(), [1000, 50_000]);
        let listed = vec![900.0, 2160.0, 9072.0, 6e4];
        assert_eq!(Preset { listed, ..preset.clone() }.sizes(), [2160, 9072]);
        assert_eq!(Preset { n: 70.0, ..preset }.sizes(), [70]);
    }

    #[test]
    fn bad_numbers_are_refused_with_key_value_and_range() {
        for (from, to, words) in [
            ("n = 5e4", "n = 2.5", "n = 2.5 is not allowed; allowed: a whole number from 2 to 4e9"),
            ("n = 5e4", "n = nan", "n = NaN is not allowed"),
            ("[1e-3]", "[1e-3, 0.5]", "tolerances = 0.5 is not allowed; allowed: 1e-14 to 0.1"),
            ("[1e-3]", "[]", "tolerances = [] is not allowed; allowed: at least one"),
            ("uniform", "cube", "sets = \"cube\" is not allowed; allowed: uniform"),
            (
                "budget = 2",
                "budget = 2\nboxes_with = [\"oil\"]",
                "boxes_with = \"oil\" is not allowed; allowed: rock-salt",
            ),
            (
                "budget = 2",
                "budget = 2\nmethods = [\"direct\"]",
                "methods = \"direct\" is not allowed; allowed: treecode, fmm",
            ),
            ("budget = 2", "budget = 2\nsigmas = [2]", "sigmas = 2 is not allowed; allowed: 1e-4 to 1"),
            ("budget = 2", "budget = 2\nnorm = \"l1\"", "norm = \"l1\" is not allowed; allowed: rms, max"),
            ("budget = 2", "budget = 2\nboxes = 64", "boxes = 64 is not allowed; allowed: powers of 4"),
            ("samples = 5", "samples = 0", "samples = 0 is not allowed; allowed: a whole number from 1 to 1000"),
            ("budget = 2", "budget = -1", "budget = -1 is not allowed; allowed: 0 to 86400 seconds"),
            ("budget = 2", "budget = 2\norders = [31]", "orders = 31 is not allowed"),
            ("budget = 2", "budget = 2\nthetas = [0.1]", "thetas = 0.1 is not allowed"),
            (
                "budget = 2",
                "budget = 2\nkernel = \"vortex\"",
                "kernel = \"vortex\" is not allowed; allowed: laplace, log, harmonic",
            ),
            (
                "budget = 2",
                "budget = 2\nkernel = \"log\"\norders = [61]",
                "orders = 61 is not allowed; allowed: whole numbers from 1 to 60",
            ),
            ("budget = 2", "bugdet = 2", "unknown field `bugdet`"),
        ] {
            let failure = Preset::parse("p.toml", &GOOD.replace(from, to)).unwrap_err();
            let shown = failure.render(false);
            assert!(failure.code == 65 && shown.contains(words) && shown.contains("p.toml"), "{shown}");
        }
        assert_eq!(Preset::load(Path::new("missing.toml")).unwrap_err().code, 66);
    }
}
