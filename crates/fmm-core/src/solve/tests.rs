//! The driver with sums of given errors.

use super::*;
use crate::accuracy::Kind;
use crate::mesh::recipe::Rates;
use crate::{Boundary, PeriodicBox};

/// Sums whose errors, in tolerances, are these one after the other; the last of them from then on.
struct Errs<'a> {
    problem: Problem,
    errors: &'a [f64],
    done: Vec<Choice>,
    measured: usize,
    /// Whether a closer look says more.
    closer: bool,
    looks: Vec<Look>,
    /// Of sums with a mesh, if they are known.
    weights: Option<Weights>,
    cancel: Cancel,
}

const TOLERANCE: f64 = 1e-4;

impl Trial for Errs<'_> {
    type Sums = Choice;

    fn problem(&self) -> Problem {
        self.problem
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn choose(&self, settings: &Settings, target_error: f64) -> Result<Choice, Error> {
        // As executors may, it refuses what no single precision can hold.
        if settings.precision == Precision::F32 && target_error < 1e-2 * TOLERANCE {
            return Err(Error::Unsupported("beyond".into()));
        }
        accuracy::choose_for(settings, self.problem, target_error)
    }

    fn execute(&mut self, _: &Settings, choice: &Choice) -> Result<Choice, Error> {
        self.done.push(choice.clone());
        Ok(choice.clone())
    }

    fn weights(&mut self, _: &Choice) -> Result<Option<Weights>, Error> {
        Ok(self.weights)
    }

    fn looks_closer(&self) -> bool {
        self.closer
    }

    fn error(&mut self, sums: &Choice, look: Look) -> Result<f64, Error> {
        assert_eq!(Some(sums), self.done.last());
        self.looks.push(look);
        self.measured += 1;
        Ok(TOLERANCE * self.errors[(self.measured - 1).min(self.errors.len() - 1)])
    }
}

/// A trial of so many bodies, whose sums have these errors.
fn trial(errors: &[f64], bodies: usize) -> Errs<'_> {
    let (kind, crowding, dense_leaf) = (Kind::Filling, 1.0, 0.1);
    let problem = Problem {
        sources: bodies,
        targets: bodies,
        kind,
        crowding,
        dense_leaf,
        side: 1.0,
        strength_range: 1.0,
        mesh: None,
        field: None,
    };
    Errs {
        problem,
        errors,
        done: vec![],
        measured: 0,
        closer: false,
        looks: vec![],
        weights: None,
        cancel: Cancel::new(),
    }
}

/// What solving gives, the choices that were executed, and how many of them were measured.
type Done = (Result<Solved<Choice>, Error>, Vec<Choice>, usize);

/// Solves after a sum that has kept `before`.
fn solved_after(before: Option<Kept>, settings: Settings, errors: &[f64], bodies: usize) -> Done {
    let settings = Settings { tolerance: TOLERANCE, ..settings };
    let mut trial = trial(errors, bodies);
    let solved = solve(&settings, before, &mut trial);
    if let Ok(solved) = &solved {
        assert_eq!(solved.choice, solved.sums, "the sums are of another choice");
    }
    (solved, trial.done, trial.measured)
}

fn kept(settings: Settings, errors: &[f64], bodies: usize) -> (Result<Choice, Error>, Vec<Choice>, usize) {
    let (solved, done, measured) = solved_after(None, settings, errors, bodies);
    (solved.map(|s| s.choice), done, measured)
}

fn fast(precision: Precision) -> Settings {
    Settings { method: Method::Fmm, precision, ..Settings::default() }
}

#[test]
fn what_is_kept_is_summed_once_and_measured_unless_the_order_is_given() {
    let (choice, done, measured) = kept(fast(Precision::F64), &[0.79], 100_000);
    assert!(choice.unwrap() == done[0] && done.len() == 1 && measured == 1);
    let (_, done, measured) = kept(fast(Precision::F64), &[0.81, 0.5], 100_000);
    assert!(done.len() == 2 && measured == 2);
    let given = Settings { order: Some(3), ..fast(Precision::F64) };
    let (_, done, measured) = kept(given, &[1e9], 100_000);
    assert!(done.len() == 1 && done[0].order == Some(3) && measured == 0);
    let direct = Settings { method: Method::Direct, ..fast(Precision::F64) };
    assert_eq!(kept(direct.clone(), &[1e9], 1000).2, 0);
    // In single precision it has something to prove.
    let (_, done, measured) = kept(Settings { precision: Precision::Auto, ..direct }, &[5.0], 100_000);
    assert!(measured == 1 && done[0].precision == Precision::F32 && done[1].precision == Precision::F64, "{done:?}");
}

#[test]
fn looks_near_the_tolerance_are_followed_by_closer_ones() {
    let looks = |errors: &[f64], bodies: usize, closer: bool| {
        let settings = Settings { tolerance: TOLERANCE, ..fast(Precision::F64) };
        let mut trial = Errs { closer, ..trial(errors, bodies) };
        solve(&settings, None, &mut trial).unwrap();
        (trial.looks, trial.done.len())
    };
    let (first, closer, last) = (Look::First, Look::Closer, Look::Last);
    // What is far below is trusted, what is far above is refused, at once.
    assert_eq!(looks(&[0.49], 20_000, true), (vec![first], 1));
    assert_eq!(looks(&[2.1, 0.1], 20_000, true), (vec![first, first], 2));
    assert_eq!(looks(&[0.51, 0.79], 20_000, true), (vec![first, closer], 1));
    // Nothing is refused for a few targets.
    assert_eq!(looks(&[0.81, 0.1], 20_000, true), (vec![first, last], 1));
    assert_eq!(looks(&[0.81, 0.1], 10_000_000, true), (vec![first, last], 1));
    assert_eq!(looks(&[0.51, 0.81, 0.1], 20_000, true), (vec![first, closer, last], 1));
    assert_eq!(looks(&[0.51, 0.81, 0.81, 0.1], 20_000, true), (vec![first, closer, last, first], 2));
    // Where it says no more there is none.
    assert_eq!(looks(&[0.51], 20_000, false), (vec![first], 1));
    assert_eq!(looks(&[0.51], 1_000_000, true), (vec![first], 1));
    assert_eq!(looks(&[0.81, 0.1], 2_000, true), (vec![first, first], 2));
}

#[test]
fn each_trial_has_a_smaller_target_error_and_the_last_is_the_direct_sum() {
    let (choice, done, measured) = kept(fast(Precision::F64), &[10.0], 100_000);
    let orders: Vec<usize> = done.iter().filter_map(|c| c.order).collect();
    assert!(orders.len() == TRIALS && measured == TRIALS && orders.windows(2).all(|w| w[1] > w[0]), "{orders:?}");
    assert!(done.iter().all(|c| c.leaf_size == done[0].leaf_size || c.order.is_none()));
    let last = done.last().unwrap();
    assert!(last.method == Method::Direct && last.precision == Precision::F64 && choice.unwrap() == *last);
    // No direct sum of so many.
    let (choice, done, _) = kept(fast(Precision::F64), &[10.0], 1_000_000);
    assert!(choice.is_err() && done.iter().all(|c| c.method == Method::Fmm));
}

#[test]
fn what_has_missed_is_not_executed_again() {
    let settings = Settings { tolerance: 1e-3, ..fast(Precision::F64) };
    let mut trial = trial(&[1.06e-3 / TOLERANCE, 0.0], 100_000);
    solve(&settings, None, &mut trial).unwrap();
    // Half the tolerance still means the same order.
    assert_eq!(accuracy::choose_for(&settings, trial.problem, 5e-4).unwrap(), trial.done[0]);
    assert!(trial.done.len() == 2 && trial.done[1].order > trial.done[0].order, "{:?}", trial.done);
}

#[test]
fn single_precision_is_given_up_where_it_is_ours_to_choose() {
    let (_, done, _) = kept(fast(Precision::Auto), &[2.0, 2.0, 0.5], 100_000);
    let precisions: Vec<Precision> = done.iter().map(|c| c.precision).collect();
    assert_eq!(precisions, [Precision::F32, Precision::F32, Precision::F64]);
    // Where it is no number at once.
    let (_, done, _) = kept(fast(Precision::Auto), &[f64::INFINITY, 0.5], 100_000);
    assert_eq!(done[1].precision, Precision::F64);
    // Where it was asked for there is no other, whether sums fail or cannot be chosen.
    for errors in [&[2.0][..], &[1e4]] {
        let (choice, done, _) = kept(fast(Precision::F32), errors, 100_000);
        assert!(choice.is_err() && done.iter().all(|c| c.precision == Precision::F32), "{choice:?}");
        let text = choice.unwrap_err().to_string();
        assert!(text.contains("is not reached on these particles by fmm in f32"), "{text}");
    }
}
#[test]
fn the_next_sum_of_a_run_begins_with_what_held() {
    let settings = || fast(Precision::Auto);
    // Tables that hold leave nothing to keep.
    assert_eq!(solved_after(None, settings(), &[0.5], 100_000).0.unwrap().kept, None);
    // Of a smaller target error alone, and in double precision.
    for (errors, trials) in [(&[2.0, 0.5][..], 2), (&[2.0, 2.0, 0.5], 3)] {
        let (first, done, _) = solved_after(None, settings(), errors, 100_000);
        let first = first.unwrap();
        assert!(done.len() == trials && first.choice != done[0]);
        let (next, done, measured) = solved_after(first.kept, settings(), &[0.5], 100_000);
        let next = next.unwrap();
        assert!(done.len() == 1 && measured == 1 && next.choice == first.choice, "{done:?}");
        assert_eq!(next.kept, first.kept.map(|k| Kept { sums: 1, ..k }));
    }
    // The direct sum, which needs no measurement.
    let (first, ..) = solved_after(None, settings(), &[10.0], 100_000);
    let (next, done, measured) = solved_after(first.unwrap().kept, settings(), &[10.0], 100_000);
    assert!(done.len() == 1 && measured == 0 && done[0].method == Method::Direct);
    assert_eq!(next.unwrap().kept.map(|k| (k.direct, k.sums)), Some((true, 1)));
}

#[test]
fn what_no_longer_holds_is_chosen_anew() {
    let before = solved_after(None, fast(Precision::Auto), &[2.0, 0.5], 100_000).0.unwrap().kept;
    let errors = [2.0, 2.0, 0.5];
    let (anew, plain, _) = solved_after(None, fast(Precision::Auto), &errors, 100_000);
    let (solved, done, _) = solved_after(before, fast(Precision::Auto), &[&[2.0], &errors[..]].concat(), 100_000);
    assert!(done.len() == 4 && done[1..] == plain && done[0] != plain[0], "{done:?}");
    assert_eq!(solved.unwrap().kept, anew.unwrap().kept.map(|k| Kept { patience: 8, ..k }));
    // What cannot be chosen is not executed.
    let beyond = before.map(|k| Kept { target_error: 1e-3 * TOLERANCE, ..k });
    let (solved, done, _) = solved_after(beyond, fast(Precision::F32), &[0.5], 100_000);
    assert!(done.len() == 1 && solved.unwrap().kept.is_none());
    // An order that is given is neither judged nor kept.
    let given = || Settings { order: Some(3), ..fast(Precision::Auto) };
    let [(solved, done, measured), (_, plain, _)] = [before, None].map(|k| solved_after(k, given(), &[9.0], 100_000));
    assert!(done == plain && measured == 0 && solved.unwrap().kept.is_none());
}

#[test]
fn tables_are_read_again_more_and_more_rarely() {
    let after = |kept, errors: &[f64]| {
        let (solved, done, _) = solved_after(kept, fast(Precision::F64), errors, 100_000);
        (solved.unwrap().kept, done)
    };
    let (mut kept, _) = after(None, &[2.0, 0.5]);
    let mut waits = vec![];
    for _ in 0..300 {
        // The choice that is kept holds, that of the tables does not.
        let began = kept;
        let tables = |done: &[Choice]| done[0] == after(None, &[0.5]).1[0];
        let (next, done) = after(kept, &[0.5]);
        kept = next;
        if tables(&done) {
            assert_eq!(kept, None, "what misled the tables is over");
            waits.push(began.unwrap().sums);
            kept = after(began, &[2.0, 0.5]).0;
        }
    }
    assert_eq!(waits, [4, 8, 16, 32, 64, 64, 64]);
}

#[test]
fn the_error_of_a_mesh_is_measured_now_and_then_and_where_fields_fall() {
    let settings = Settings { tolerance: TOLERANCE, method: Method::Mesh, ..Settings::default() };
    let sum = |kept: Option<Kept>, errors: &[f64], field: Option<f64>| {
        let mut trial = trial(errors, 20_000);
        trial.problem = trial.problem.in_box().with_mesh(Some(Rates::CORES));
        trial.weights = field.map(|e| Weights([0.1 / e, 0.1 / e, 0.0]));
        let settings = Settings { boundary: Boundary::Periodic(PeriodicBox::cube(1.0)), ..settings.clone() };
        let solved = solve(&settings, kept, &mut trial).unwrap();
        (solved.kept, trial.done, trial.measured)
    };
    let (mut kept, first, measured) = sum(None, &[0.3], Some(1.0));
    assert!(measured == 1 && first[0].method == Method::Mesh && kept.unwrap().mesh.unwrap().error == 0.3 * TOLERANCE);
    let mut measured = vec![];
    for number in 1..=66 {
        let (next, done, looks) = sum(kept, &[0.3], Some(1.0));
        assert_eq!(done, first);
        kept = next;
        measured.extend((looks > 0).then_some(number));
    }
    assert_eq!(measured, [16, 32, 48, 64]);
    // Fields of a half make the error three fifths of the tolerance; weaker ones are measured, by themselves.
    let after = |field: f64, errors: &[f64]| sum(kept, errors, Some(field));
    assert_eq!(after(0.51, &[9.0]).2, 0);
    let (next, done, looks) = after(0.49, &[0.7]);
    assert!(done == first && looks == 1 && next.unwrap().mesh.unwrap().error == 0.7 * TOLERANCE);
    // A mesh that no longer holds is chosen anew.
    let (next, done, looks) = after(0.1, &[3.0, 0.3]);
    assert!(done.len() == 2 && done[1] == first[0] && looks == 2, "{done:?}");
    assert_eq!(next.unwrap().sums, 0);
    // Where weights are not known every sum is measured, and nothing is kept of tables that hold.
    assert!(sum(None, &[0.3], None).0.is_none());
}
