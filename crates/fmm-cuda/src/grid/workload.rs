//! The least time that sums on grids can take on a device: the instructions of its double-precision
//! units, counted in the text of the kernels, over the rate at which it issues them. All other
//! instructions of the loops (loads from shared memory, estimates of roots, integers) are issued in
//! between, since these units take a new instruction of a warp every other cycle.

use fmm_core::grid::Green;
use fmm_core::grid::plan::SIDE;

use crate::kernels::GRID_NEAR;

/// Instructions of the double-precision units that a direct pair of a point and a source takes: those of the inner loop of the kernel, which meets one
/// source with a column of points. `None` without kernels.
pub fn direct_instructions(green: Green) -> Option<f64> {
    let name = if green == Green::Singular { "grid_p2p_singular" } else { "grid_p2p_regularised" };
    Some(largest_block(GRID_NEAR, name)? as f64 / SIDE as f64)
}

/// The double-precision arithmetic of the basic block that has most of it. The assembler turns each of these into one instruction, and signs
/// into none.
fn largest_block(text: &str, kernel: &str) -> Option<usize> {
    let (_, rest) = text.split_once(&format!(".entry {kernel}("))?;
    let body = rest.split(".visible .entry").next()?;
    let arithmetic = |line: &&str| {
        let line = line.trim_start();
        ["fma.rn.f64", "mul.f64", "add.f64", "sub.f64"].iter().any(|op| line.starts_with(op))
    };
    let blocks = body.split("\n$L__").map(|block| block.lines().filter(arithmetic).count());
    blocks.max()
}

/// Instructions of a pair of a point and a node of order `order`, as the formulas have them: distance and root, harmonics of order 0, of the other
/// orders, and their weights.
pub fn indirect_instructions(order: usize) -> f64 {
    let p = order as f64;
    let (begin, zero) = (16.0, 10.0 * (p + 1.0) + 3.0);
    begin + zero + 12.0 * (p + 1.0) + 9.0 * p * (p + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_counted_by_blocks() {
        let text = ".visible .entry a(\n fma.rn.f64 x;\n$L__1:\n mul.f64 y;\n add.f64 y;\n mov.f64 z;\n neg.f64 z;\n$L__2:\n sub.f64 z;\n\
                    .visible .entry b(\n fma.rn.f64 x;\n fma.rn.f64 x;\n fma.rn.f64 x;\n";
        assert_eq!(largest_block(text, "a"), Some(2));
        assert_eq!(largest_block(text, "b"), Some(3));
        assert_eq!(largest_block(text, "c"), None);
        // 339 weights of order 6, and the harmonics.
        assert_eq!(indirect_instructions(6), 551.0);
    }
}
