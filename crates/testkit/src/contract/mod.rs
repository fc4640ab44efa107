//! The contract of a place: what the cores and every GPU promise of the same sums, as tests that are run on each.
//!
//! A crate that has a place implements [`Place`] and writes [`contract!`](crate::contract!) in a module of its tests:
//! there is then a test of every promise.

mod boxes;
mod gauss;
mod hessian;
mod kinds;
mod mesh;
mod molecules;
mod neutral;
mod plane;
mod space;
mod vortex;

pub use boxes::*;
pub use gauss::*;
pub use hessian::*;
pub use kinds::*;
pub use mesh::*;
pub use molecules::*;
pub use neutral::*;
pub use plane::*;
pub use space::*;
pub use vortex::*;

use fmm_core::gauss::{Axes, Dimension, Settings as GaussSettings};
use fmm_core::planar::{Blob, Kernel};
use fmm_core::{Complex64, Error, Evaluation, ParticleStore, Settings, StageTimes, WithHessian};

/// Where sums are done. Without targets they are at the sources.
pub trait Place {
    /// Potential and field of charges or masses.
    ///
    /// # Errors
    /// Those of the sum.
    fn evaluate(
        &self,
        settings: &Settings,
        sources: &[[f64; 3]],
        strengths: &[f64],
        targets: Option<&[[f64; 3]]>,
    ) -> Result<Evaluation, Error>;

    /// The same, and second derivatives.
    ///
    /// # Errors
    /// Those of the sum.
    fn evaluate_hessian(
        &self,
        settings: &Settings,
        sources: &[[f64; 3]],
        strengths: &[f64],
        targets: Option<&[[f64; 3]]>,
    ) -> Result<WithHessian, Error>;

    /// The particles of a run.
    ///
    /// # Errors
    /// Those of the place's store.
    fn store(&self, settings: &Settings) -> Result<Box<dyn ParticleStore>, Error>;

    /// Velocities of vortex particles.
    ///
    /// # Errors
    /// Those of the sum.
    fn biot_savart(
        &self,
        settings: &Settings,
        sources: &[[f64; 3]],
        strengths: [&[f64]; 3],
        targets: Option<&[[f64; 3]]>,
    ) -> Result<Evaluation, Error>;

    /// A sum in the plane.
    ///
    /// # Errors
    /// Those of the sum.
    fn in_plane(
        &self,
        settings: &Settings,
        kernel: Kernel,
        blob: Blob,
        sources: &[Complex64],
        strengths: &[Complex64],
        targets: Option<&[Complex64]>,
    ) -> Result<Evaluation<Complex64>, Error>;

    /// Sums of Gaussians, one for each column of strengths.
    ///
    /// # Errors
    /// Those of the sum.
    fn gauss<const D: usize>(
        &self,
        settings: &GaussSettings,
        sources: &[[f64; D]],
        strengths: &[&[f64]],
        targets: Option<&[[f64; D]]>,
    ) -> Result<fmm_core::gauss::Evaluation<D>, Error>
    where
        Axes<D>: Dimension<D>;
}

/// The cores.
pub struct Cores;

impl Place for Cores {
    fn evaluate(
        &self,
        settings: &Settings,
        sources: &[[f64; 3]],
        strengths: &[f64],
        targets: Option<&[[f64; 3]]>,
    ) -> Result<Evaluation, Error> {
        fmm_core::evaluate(settings, sources, strengths, targets, &mut StageTimes::default())
    }

    fn store(&self, settings: &Settings) -> Result<Box<dyn ParticleStore>, Error> {
        Ok(Box::new(fmm_core::CpuStore::new(settings.clone())?))
    }

    fn evaluate_hessian(
        &self,
        settings: &Settings,
        sources: &[[f64; 3]],
        strengths: &[f64],
        targets: Option<&[[f64; 3]]>,
    ) -> Result<WithHessian, Error> {
        fmm_core::evaluate_hessian(settings, sources, strengths, targets, &mut StageTimes::default())
    }

    fn biot_savart(
        &self,
        settings: &Settings,
        sources: &[[f64; 3]],
        strengths: [&[f64]; 3],
        targets: Option<&[[f64; 3]]>,
    ) -> Result<Evaluation, Error> {
        fmm_core::biot_savart(settings, sources, strengths, targets, &mut StageTimes::default())
    }

    fn in_plane(
        &self,
        settings: &Settings,
        kernel: Kernel,
        blob: Blob,
        sources: &[Complex64],
        strengths: &[Complex64],
        targets: Option<&[Complex64]>,
    ) -> Result<Evaluation<Complex64>, Error> {
        let times = &mut StageTimes::default();
        fmm_core::planar::evaluate(settings, kernel, blob, sources, strengths, targets, times)
    }

    fn gauss<const D: usize>(
        &self,
        settings: &GaussSettings,
        sources: &[[f64; D]],
        strengths: &[&[f64]],
        targets: Option<&[[f64; D]]>,
    ) -> Result<fmm_core::gauss::Evaluation<D>, Error>
    where
        Axes<D>: Dimension<D>,
    {
        fmm_core::gauss::evaluate(settings, sources, strengths, targets, &mut StageTimes::default())
    }
}

/// A test of every promise on the place that the expression gives; `None` skips it. The expression has to say so aloud.
#[macro_export]
macro_rules! contract {
    ($place:expr) => {
        $crate::contract! { $place;
            the_fmm_keeps_every_tolerance_in_double_precision
            the_fmm_keeps_every_tolerance_in_single_precision
            the_treecode_keeps_its_tolerance
            sets_around_dense_cores_keep_their_tolerance
            bodies_where_forces_cancel_keep_their_tolerance
            errors_are_estimated
            rounded_strengths_are_seen
            rounding_where_forces_cancel_is_seen
            points_on_lines_keep_their_tolerance
            crystals_keep_their_tolerance
            bodies_around_molecules_keep_their_tolerance
            bodies_among_molecules_in_a_box_keep_their_tolerance
            the_rounding_of_neutral_sets_is_estimated
            pairs_in_double_precision_are_not_counted_as_rounded
            light_bodies_next_to_a_slab_keep_their_tolerance
            the_fmm_keeps_every_tolerance_with_pairs_in_single_precision
            targets_of_close_pairs_are_summed_in_double_precision
            bodies_on_a_curve_are_summed_in_double_precision
            lengths_of_any_range_keep_their_tolerance
            a_flat_sheet_keeps_its_tolerance
            softened_sums_keep_their_tolerance
            cusps_of_softened_bodies_keep_their_tolerance
            softening_of_any_length_is_finite_and_right
            screened_sums_keep_their_tolerance
            sets_of_many_screening_lengths_are_summed_directly
            screening_without_end_is_none
            pairs_too_close_for_single_precision_are_summed_in_double
            single_precision_refuses_what_it_cannot_keep
            the_fmm_keeps_its_tolerance_in_boxes
            the_treecode_keeps_its_tolerance_in_boxes
            softened_boxes_keep_their_tolerance
            a_mesh_keeps_its_tolerance_in_boxes
            every_precision_of_a_mesh_keeps_what_it_takes
            meshes_of_runs_keep_their_tolerance_between_measurements
            orders_and_cut_offs_of_a_mesh_that_are_given_are_taken
            boxes_of_any_shape_and_few_bodies_have_a_mesh
            close_and_coincident_bodies_of_a_mesh_are_right
            a_pair_that_all_but_meets_hides_no_errors
            separate_targets_positions_anywhere_and_surroundings
            bodies_at_one_place_see_their_images
            very_long_boxes_have_no_expansions
            twelve_kinds_of_boxes_keep_every_tolerance
            velocities_keep_their_tolerance
            a_velocity_is_the_formulas
            velocities_of_other_softenings_are_refused
            second_derivatives_keep_their_tolerance
            second_derivatives_at_other_targets_keep_their_tolerance
            sums_in_the_plane_keep_their_tolerance
            separate_targets_and_complex_strengths
            gaussians_along_one_axis_keep_their_tolerance_on_every_route
            gaussians_in_the_plane_keep_their_tolerance_on_every_route
            gaussians_in_space_keep_their_tolerance_on_every_route
            gaussians_of_hard_sets_keep_their_tolerance
            columns_of_gaussians_are_summed_each_for_itself
        }
    };
    ($place:expr; $($promise:ident)*) => {
        $(
            #[test]
            fn $promise() {
                let Some(place) = $place else { return };
                $crate::contract::$promise(&place);
            }
        )*
    };
}
