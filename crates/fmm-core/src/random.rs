//! Random numbers that depend on seed, group and particle only: each particle reads its own part of a ChaCha stream.

use rand::distr::Open01;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// The random numbers of a group.
#[derive(Debug, Clone)]
pub struct Stream {
    generator: ChaCha8Rng,
    /// Number of the first particle.
    first: u128,
}

/// 32-bit words reserved for a particle: more than any rejection will use.
const WORDS: u128 = 1 << 20;

/// Blocks of the generator reserved for a particle.
pub const BLOCKS: u64 = WORDS as u64 / 16;

impl Stream {
    /// Of group number `group`.
    pub fn new(seed: u64, group: usize) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(group as u64);
        Stream { generator, first: 0 }
    }

    /// The random numbers of the particles after the first `n`.
    pub fn after(&self, n: usize) -> Self {
        Stream { generator: self.generator.clone(), first: self.first + n as u128 }
    }

    /// What a generator elsewhere needs to draw the same: the key of ChaCha8 in words, the number of the stream, and the block of 16 words
    /// with which the numbers of a particle begin, [`BLOCKS`] for each one before it.
    pub fn key(&self) -> ([u32; 8], u64, u64) {
        let seed = self.generator.get_seed();
        let word = |k: usize| u32::from_le_bytes(std::array::from_fn(|byte| seed[4 * k + byte]));
        (std::array::from_fn(word), self.generator.get_stream(), self.first as u64 * BLOCKS)
    }

    /// Draws `n` particles in parallel.
    pub fn sample<R: Send>(&self, n: usize, draw: impl Fn(&mut Dice) -> R + Sync) -> Vec<R> {
        let start = || Dice(self.generator.clone());
        let particle = |dice: &mut Dice, i: usize| {
            dice.0.set_word_pos((self.first + i as u128) * WORDS);
            draw(dice)
        };
        (0..n).into_par_iter().map_init(start, particle).collect()
    }
}

/// The random numbers of a particle.
pub struct Dice(ChaCha8Rng);

impl Dice {
    /// Uniform in the open interval (0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0.sample(Open01)
    }

    /// A vector of length `r` in a uniformly random direction.
    pub fn direction(&mut self, r: f64) -> [f64; 3] {
        let cos = 2.0 * self.uniform() - 1.0;
        let sin = (1.0 - cos * cos).sqrt();
        let (s, c) = (2.0 * std::f64::consts::PI * self.uniform()).sin_cos();
        [r * sin * c, r * sin * s, r * cos]
    }

    /// A normal variate of mean 0 and standard deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn particles_depend_on_seed_group_and_index_only() {
        let draw = |d: &mut Dice| (0..d.uniform().to_bits() % 7 + 1).map(|_| d.uniform()).sum::<f64>();
        let of = |threads, seed, group, n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Stream::new(seed, group).sample(n, draw))
        };
        let one = of(1, 42, 0, 1000);
        assert_eq!(one, of(3, 42, 0, 1000));
        assert_eq!(one[..10], of(2, 42, 0, 10)[..]);
        assert_ne!(one[0], of(1, 43, 0, 1)[0]);
        assert_ne!(one[0], of(1, 42, 1, 1)[0]);
        assert_ne!(one[0], one[1]);
        assert_eq!(one[7..9], Stream::new(42, 0).after(7).sample(2, draw)[..]);
    }
}
