//! The tables of M2L as a product of matrices.

use cust::memory::DeviceCopy;
use fmm_core::Error;

use crate::buffer::Buffer;
use crate::m2l_scales::Scales;
use crate::m2l_schedule::M2lSchedule;
use crate::mma_layout::{Arithmetic, MmaLayout};
use crate::view::NONE;

/// The tables of M2L: see `M2lView`.
pub struct M2l {
    /// `[8][slots]`
    pub operators: Buffer<u32>,
    /// `[8][classes]`
    pub slot_of: Buffer<u32>,
    /// `[8][pitch]`
    pub source_signs: Buffer<u32>,
    /// `[8][8 columns]`
    pub target_signs: Buffer<u32>,
    /// `[pitch]`
    pub order: Buffer<u32>,
    /// Words of numbers `[][steps][columns][32][4]`
    pub matrices: Buffer<u32>,
    /// What packed places and target coefficients are multiplied by, with halves. `[pitch]`, `[8 columns]`
    pub scales: [Buffer<f64>; 2],
    /// Operators that targets of one octant can meet.
    pub slots: usize,
    /// Matrices of a level; 0: all levels have the same.
    pub per_level: usize,
    /// How the product is divided among lanes and steps.
    pub cut: MmaLayout,
}

impl M2l {
    /// The tables for coefficients whose mirrors change `signs`.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn new(
        plan: &M2lSchedule,
        arithmetic: Arithmetic,
        signs: &[u8],
        matrices: Vec<u32>,
        scales: Option<&Scales>,
    ) -> Result<Self, Error> {
        let cut = MmaLayout::new(signs.len(), arithmetic);
        let odd = |axes: u8, k: Option<usize>| k.is_some_and(|k| (signs[k] & axes).count_ones() % 2 == 1);
        let packed = |axes| {
            let four = move |at: usize| std::array::from_fn(|j| odd(axes, cut.coefficient(4 * at + j)));
            (0..cut.pitch() / 4).flat_map(move |at| arithmetic.sign_words(four(at)))
        };
        let plain =
            |axes| (0..8 * cut.columns).map(move |k| u32::from(odd(axes, Some(k).filter(|&k| k < cut.n))) << 31);
        let of_source =
            |s: &Scales| (0..cut.pitch()).map(|at| cut.coefficient(at).map_or(0.0, |k| s.of_source(k))).collect();
        let of_target =
            |s: &Scales| (0..8 * cut.columns).map(|k| if k < cut.n { s.of_target(k) } else { 0.0 }).collect();
        let of_source: Vec<f64> = scales.map_or(vec![], of_source);
        let of_target: Vec<f64> = scales.map_or(vec![], of_target);
        let order: Vec<u32> = (0..cut.pitch()).map(|place| cut.coefficient(place).map_or(NONE, |k| k as u32)).collect();
        Ok(M2l {
            slots: plan.operators.len() / 8,
            per_level: 0,
            scales: [upload(&of_source)?, upload(&of_target)?],
            operators: upload(&plan.operators)?,
            slot_of: upload(&plan.slot_of)?,
            source_signs: upload(&(0..8).flat_map(packed).collect::<Vec<_>>())?,
            target_signs: upload(&(0..8).flat_map(plain).collect::<Vec<_>>())?,
            order: upload(&order)?,
            matrices: upload(&matrices)?,
            cut,
        })
    }
}

fn upload<T: DeviceCopy + Default>(values: &[T]) -> Result<Buffer<T>, Error> {
    let mut buffer = Buffer::new();
    buffer.upload(values)?;
    Ok(buffer)
}
