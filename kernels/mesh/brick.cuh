// Bricks of cells, whose bodies a block has.
#pragma once
#include "common/scan.cuh"
#include "mesh/lattice.cuh"

// The first cell of a brick, and its sides in cells, less at the end of the mesh.
struct Brick {
  int first[3], width[3];
};

__device__ inline Brick brick_of(const Lattice &l, const unsigned (&sides)[3], unsigned index) {
  const unsigned y = (l.cells[1] + sides[1] - 1) / sides[1], z = (l.cells[2] + sides[2] - 1) / sides[2];
  const unsigned at[3] = {index / (y * z), index / z % y, index % z};
  Brick brick;
#pragma unroll
  for (int d = 0; d < 3; d++) {
    brick.first[d] = at[d] * sides[d];
    brick.width[d] = min(sides[d], l.cells[d] - unsigned(brick.first[d]));
  }
  return brick;
}

// Columns of a brick along z, at most: bodies of one follow each other.
constexpr unsigned MOST_COLUMNS = BRICK_COLUMNS;

// Where the bodies of a brick are, in shared memory: of each column how many there are up to its end, and the place of its first less those
// before it.
struct Columns {
  unsigned end[MOST_COLUMNS], first[MOST_COLUMNS];

  // Called by all threads of a block, at least as many as there are columns. Returns the number of bodies.
  __device__ unsigned find(const Lattice &l, const Brick &brick, const uint32_t *start) {
    const unsigned count = brick.width[0] * brick.width[1];
    unsigned place = 0, length = 0;
    if (threadIdx.x < count) {
      const unsigned x = brick.first[0] + threadIdx.x / brick.width[1], y = brick.first[1] + threadIdx.x % brick.width[1];
      const unsigned cell = (x * l.cells[1] + y) * l.cells[2] + brick.first[2];
      place = start[cell];
      length = start[cell + brick.width[2]] - place;
    }
    uint32_t all;
    const uint32_t before = block_exclusive(length, all);
    if (threadIdx.x < count) {
      end[threadIdx.x] = before + length;
      first[threadIdx.x] = place - before;
    }
    __syncthreads();
    return all;
  }

  // The place of a body by its number among those of the brick, and its column.
  __device__ unsigned place_of(const Brick &brick, unsigned number, unsigned &column) const {
    unsigned a = 0, b = brick.width[0] * brick.width[1] - 1;
    while (a < b) {
      const unsigned half = (a + b) / 2;
      if (end[half] > number) b = half;
      else a = half + 1;
    }
    column = a;
    return first[a] + number;
  }
};
