// Direct sums by lists: tasks, and the sums in open space.
#include "near/near.cuh"

extern "C" {
// The tasks of a cell. Places and marks that stay free hold NONE and 0.
__global__ void __launch_bounds__(TILE) near_tasks(NearView v) {
  const size_t cell = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (cell >= v.targets.cells || !is_leaf(v.targets, cell) || !in_share(v.targets, cell)) return;
  const uint32_t begin = v.targets.bodies[2 * cell], end = v.targets.bodies[2 * cell + 1];
  for (unsigned k = 0; k < task_count(end - begin); k++) {
    uint32_t *task = v.tasks + 3 * task_place(v.targets, cell, k);
    task[0] = cell;
    task[1] = begin + task_begin(end - begin, k);
    task[2] = begin + task_begin(end - begin, k + 1);
  }
}

// Bodies from the centers of their leaves, and the sizes of their strengths together. A warp has one cell.
__global__ void __launch_bounds__(TILE) near_bodies(NearView v) {
  const size_t cell = size_t(blockIdx.x) * (TILE / 32) + threadIdx.x / 32;
  if (cell >= v.sources.cells || !is_leaf(v.sources, cell) || (v.needed && !v.needed[cell])) return;
  const Frame<float> frame(v.sources, cell, power_of_two_below(v.sources.half[0]));
  float size = 0;
  for (uint32_t i = v.sources.bodies[2 * cell] + threadIdx.x % 32; i < v.sources.bodies[2 * cell + 1]; i += 32) {
    const Body b = v.source_bodies[i];
    float at[3];
    frame.place(b, at);
    v.near[i] = make_float4(at[0], at[1], at[2], float(b.q));
    size += fabsf(float(b.q));
  }
  size = warp_sum(size);
  if (threadIdx.x % 32 == 0) v.sizes[cell] = size;
}

#define OPEN_SPACE(NAME, KERNEL) LISTS(NAME, KERNEL, false)
FOR_EACH_KERNEL(OPEN_SPACE)
}
