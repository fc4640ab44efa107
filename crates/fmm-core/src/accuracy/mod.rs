//! From a tolerance to method, order, opening angle and leaf size.
//!
//! The contract: `tolerance` bounds both the rms over targets of e_i = |δa_i|/max(|a_i|, f_i), with f_i a thousandth of the
//! largest single term of target i, and L2 = ‖δa‖/‖a‖. The tables below are measured errors (docs/accuracy.md says on
//! which sets), the worst of their class of sets with a margin; every choice is a pure function of the arguments.

mod cost;
mod fit;
mod limits;
mod mesh;
mod problem;
mod tables;

pub use cost::repairs;
pub use fit::{best_leaf, fit};
pub use limits::{F32_FLOOR, MIXED_FLOOR, check_expansions, closest_pair, f32_floor};
pub use mesh::{cheaper_mesh, crowding_in};
pub use problem::{Kind, Problem, Spread, Strengths, field_of_ions, potential_of_ions};

use crate::Error;
use crate::boundary::PeriodicBox;
use crate::expansion::MAX_CARTESIAN_ORDER;
use crate::lists::Rule;
use crate::settings::{Choice, Family, Method, Precision, Settings, Uniform};
use cost::{LEAF_SHARE, direct_cost, ewald_cost, fast_cost, leaf_size, m2l_cost, pair_cost};
use limits::{beyond_f32, beyond_mixed, in_single};
use tables::expansion;

/// Direct sums of no more pairs, a millisecond's work, are in double precision unless single is asked for.
const FEW_PAIRS: f64 = 1e6;

/// Resolves everything that `settings` leaves open.
///
/// # Errors
/// [`Error::Unsupported`] where single precision cannot keep the tolerance.
pub fn choose(settings: &Settings, problem: Problem) -> Result<Choice, Error> {
    choose_for(settings, problem, settings.tolerance)
}

/// The same with the tables read at another error, `target_error`: where a sample has shown that a set
/// errs more than those of the tables.
///
/// # Errors
/// Those of [`choose`].
pub fn choose_for(settings: &Settings, problem: Problem, target_error: f64) -> Result<Choice, Error> {
    settings.check()?;
    let method = if settings.method == Method::Treecode { Method::Treecode } else { Method::Fmm };
    let cancels = problem.kind == Kind::Cancelling;
    let table_error = if cancels { problem.table_error(target_error, false) } else { target_error };
    let (family, separation2, order) = expansion(settings, problem, method, table_error);
    let order = settings.order.unwrap_or(order);
    let far = settings.method != Method::Direct;
    let keeps = |floor: f64| far && in_single(floor, settings, problem.kind);
    let single = beyond_f32(settings, problem, far.then_some(order));
    let mixed = beyond_mixed(settings, problem);
    let precision = match (settings.precision, single, mixed) {
        // Twice the floor for flat sets and charges in boxes, and for direct sums, which cannot keep a tolerance by a
        // higher order.
        (Precision::Auto, None, _) if settings.tolerance >= 2.0 * F32_FLOOR || keeps(F32_FLOOR) => Precision::F32,
        (Precision::Auto, _, None) if keeps(MIXED_FLOOR) => Precision::Mixed,
        (Precision::Auto, ..) => Precision::F64,
        (Precision::F32, Some(why), _) => return Err(Error::Unsupported(why)),
        (Precision::Mixed, _, Some(why)) => return Err(Error::Unsupported(why)),
        (given, ..) => given,
    };
    let direct = Choice {
        method: Method::Direct,
        precision,
        expansion: None,
        order: None,
        theta: None,
        leaf_size: settings.leaf_size.unwrap_or(256),
    };
    // Where digits cost nothing, all of them.
    let few = settings.precision == Precision::Auto && problem.pairs() <= FEW_PAIRS;
    let double = few || precision == Precision::Mixed;
    let direct = if double { Choice { precision: Precision::F64, ..direct } } else { direct };
    let cell = settings.boundary.periodic();
    // Ewald's sums have all digits.
    let direct = if cell.is_some() { Choice { precision: Precision::F64, ..direct } } else { direct };
    if settings.method == Method::Mesh {
        return mesh::choose(settings, problem, precision, target_error);
    }
    let meshed = |time: f64| mesh::cheaper_mesh(settings, problem, precision, target_error, time);
    if settings.method == Method::Direct {
        if cell.is_some() && settings.precision == Precision::F32 {
            return Err(Error::Unsupported(
                "direct sums in a periodic box are in double precision; precision auto or f64".into(),
            ));
        }
        return Ok(direct);
    }
    if let Some(cell) = cell
        && cell.longest() > PeriodicBox::MOST_ELONGATED * cell.shortest()
    {
        let (ratio, most) = (cell.longest() / cell.shortest(), PeriodicBox::MOST_ELONGATED);
        // Ewald's sum is in double precision.
        let single = settings.precision == Precision::F32;
        if settings.method == Method::Auto {
            let ewald = if single { f64::INFINITY } else { ewald_cost(cell.volume(), problem) };
            let mesh = meshed(ewald).filter(|_| open_choice(settings));
            if let Some(choice) = mesh.or_else(|| (!single).then(|| direct.clone())) {
                return Ok(choice);
            }
        }
        let way_out = if settings.method == Method::Auto {
            "method mesh, or precision auto or f64"
        } else {
            "method auto, mesh or direct"
        };
        return Err(Error::Unsupported(format!(
            "expansions serve periodic boxes whose longest side is up to {most} times the shortest, not {ratio}; {way_out}"
        )));
    }
    match check_expansions(settings.softening, problem) {
        Err(_) if settings.method == Method::Auto => return Ok(direct),
        checked => checked?,
    }
    if let (Some(p), Family::Cartesian) = (settings.order, family)
        && p > MAX_CARTESIAN_ORDER
    {
        return Err(Error::Unsupported(format!(
            "order {p} is beyond the {MAX_CARTESIAN_ORDER} of expansions of {}; give a smaller theta instead",
            settings.softening.name()
        )));
    }
    if let Some(uniform) = settings.uniform {
        // Near cells further apart err less than those that the order was chosen for.
        let (theta, expansion) = (Some(0.75f64.sqrt()), Some(family));
        let per_leaf = problem.sources.max(problem.targets) >> (3 * uniform.depth).min(63);
        return Ok(Choice { method, precision, expansion, order: Some(order), theta, leaf_size: per_leaf.max(1) });
    }
    let leaf_size = settings.leaf_size.unwrap_or_else(|| match leaf_size(method, family, precision, order) {
        // The root cannot be widened to fit the leaves: between two levels, rather fuller ones.
        size if cell.is_some() => size + size / 2,
        size => size,
    });
    let widest = if method == Method::Fmm { 0.75f64.sqrt() } else { 1.0 };
    let theta = settings.theta.unwrap_or((3.0 / separation2).sqrt()).min(widest);
    let choice =
        Choice { method, precision, expansion: Some(family), order: Some(order), theta: Some(theta), leaf_size };
    let cheaper = open_choice(settings);
    let direct_cost = || match cell {
        None => direct_cost(problem, precision),
        Some(cell) => ewald_cost(cell.volume(), problem),
    };
    if !cheaper {
        return Ok(choice);
    }
    let fast = fast_cost(problem, &choice, cell);
    let meshed = meshed(fast.min(direct_cost()));
    Ok(meshed.unwrap_or(if direct_cost() <= fast { direct } else { choice }))
}

/// Whether the cheapest method is to be taken.
fn open_choice(settings: &Settings) -> bool {
    settings.method == Method::Auto && settings.order.is_none() && settings.theta.is_none()
}

/// The traversal's rule for a choice.
pub fn rule(settings: &Settings, choice: &Choice) -> Rule {
    let coefficients = choice.order.map_or(1, |p| (p + 1) * (p + 1));
    let pairs = choice.expansion.map_or(0.0, |family| {
        m2l_cost(family, choice.precision, choice.order.unwrap_or(1)) / pair_cost(choice.precision)
    });
    let separation2 = choice.theta.map_or(4.0, Rule::separation2_of);
    let any_distance = choice.expansion == Some(Family::Cartesian);
    let fmm = choice.method == Method::Fmm;
    let separation2 = if fmm { separation2.max(4.0 * (1.0 - 1e-12)) } else { separation2 };
    let rule = Rule {
        separation2,
        most_near: 0,
        point_separation2: if fmm { Rule::point_separation2_of(separation2) } else { separation2 },
        min_distance: if any_distance { 0.0 } else { settings.softening.newtonian_beyond(settings.tolerance) },
        m2l_min_pairs: pairs as usize,
        m2p_min_bodies: 2 * coefficients,
        p2l_min_bodies: 2 * coefficients,
    };
    match settings.uniform {
        None => rule,
        // All that is separated meets by M2L.
        Some(Uniform { separation, .. }) => Rule {
            most_near: separation as i32,
            m2l_min_pairs: 0,
            m2p_min_bodies: usize::MAX,
            p2l_min_bodies: usize::MAX,
            ..rule
        },
    }
}
