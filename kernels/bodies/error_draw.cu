// The sample of the guard, drawn by the squares of predicted errors: fmm-core's `guard/sample.rs`.
#include "common/image.cuh"
#include "common/largest_term.cuh"
#include "common/real.cuh"
#include "common/tree.cuh"

// Threads of a block that is alone, and of a block that has a chunk of the targets.
constexpr unsigned ALONE = 1024, CHUNK_THREADS = 256;

// A number from 0 to 1 for each other number, without a pattern: as `math::mix` has it.
__device__ inline double spread(uint64_t k) {
  uint64_t z = (k + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return double(z ^ (z >> 31)) / 18446744073709551616.0;
}

// The sum of a number of each thread of a block of ALONE, in one order.
__device__ inline double sum_of_block(double x, double *warps) {
  x = warp_sum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
  __syncthreads();
  double sum = 0;
  for (unsigned w = 0; w < ALONE / 32; w++) sum += warps[w];
  return sum;
}

// The sum of a number of each thread of a block up to this one. It never falls from one thread to the next by rounding:
// the sum of a warp's last is where the next warp begins.
template <unsigned THREADS> __device__ inline double running_sum(double x, double *held, double *warps) {
  const unsigned me = threadIdx.x;
  held[me] = x;
  __syncthreads();
  if (me % 32 == 0) {
    double sum = 0;
    for (unsigned k = me; k < me + 32; k++) held[k] = sum += held[k];
    warps[me / 32] = sum;
  }
  __syncthreads();
  if (me == 0) {
    double sum = 0;
    for (unsigned w = 0; w < THREADS / 32; w++) {
      const double own = warps[w];
      warps[w] = sum;
      sum += own;
    }
  }
  __syncthreads();
  return warps[me / 32] + held[me];
}

// How often a target is expected to be drawn: evenly, and in proportion to its squares.
struct Draws {
  double even, by_squares[2];
  __device__ double of(float2 squares) const {
    // Kernels that count and that write agree to the last bit.
    return fma(double(squares.x), by_squares[0], fma(double(squares.y), by_squares[1], even));
  }
};

// How a sample is drawn: what those targets were expected to be drawn that are there for certain
// (once or more), and what the others are; how many there are for certain, and whether there may be
// more.
struct DrawPlan {
  Draws chosen, draws;
  double certain, goes_on;
};

// Of `count` targets with these sums of squares, all draws that are `left`, of which `even` stay even.
__device__ inline Draws draws_of_rest(double count, const double *squares, double left, double even) {
  Draws draws;
  double given = 0;
  const double by_squares = fmax(left - even, 0.0);
  for (unsigned k = 0; k < 2; k++) {
    const double share = squares[k] > 0 ? 0.5 * by_squares : 0;
    draws.by_squares[k] = share > 0 ? share / squares[k] : 0;
    given += share;
  }
  draws.even = (left - given) / count;
  return draws;
}

// The targets of a chunk: the first, and one past the last.
__device__ inline uint2 targets_of(const DrawView &v, unsigned chunk) {
  return make_uint2(uint64_t(v.count) * chunk / v.chunks, uint64_t(v.count) * (chunk + 1) / v.chunks);
}

// The larger of a number of each thread of a block of CHUNK_THREADS, or their sum, for thread 0.
template <bool SUM> __device__ inline double joined_by_chunk(double x, double *held) {
  __syncthreads();
  held[threadIdx.x] = x;
  for (unsigned d = CHUNK_THREADS / 2; d > 0; d /= 2) {
    __syncthreads();
    if (threadIdx.x < d) {
      const double other = held[threadIdx.x + d];
      held[threadIdx.x] = x = SUM ? x + other : fmax(x, other);
    }
  }
  return x;
}

extern "C" {
// The squares of errors that are alike everywhere. A thread has a target.
__global__ void __launch_bounds__(CHUNK_THREADS) error_alike(AlikeView v) {
  const uint32_t i = blockIdx.x * CHUNK_THREADS + threadIdx.x;
  if (i >= v.count) return;
  const double *e = v.field + 3 * size_t(v.order[i]);
  double square = e[0] * e[0] + e[1] * e[1] + e[2] * e[2];
  if (square < v.doubted_square) {
    const uint32_t cell = v.cell[i], first = v.start[cell], last = v.start[cell + 1];
    const uint32_t middle = v.same ? i : first + (last - first) / 2;
    const uint32_t begin = max(first - min(first, v.margin), middle - min(middle, v.most));
    const uint32_t end = min(min(v.sources, last + v.margin), middle + v.most);
    square = fmax(square, v.floor * largest_term(v.targets[i], v.bodies, begin, end, v.reach2));
  }
  reinterpret_cast<float2 *>(v.squares)[i] = make_float2(v.least_square / fmax(square, v.least_square), 1);
}

// The sums of the squares of a chunk of the targets, and of the field, and the largest squares. A
// block has a chunk.
__global__ void __launch_bounds__(CHUNK_THREADS) error_chunks(DrawView v) {
  __shared__ double held[CHUNK_THREADS];
  const unsigned chunk = v.first + blockIdx.x;
  const uint2 targets = targets_of(v, chunk);
  double sum[3] = {};
  float largest[2] = {};
  const float2 *squares = reinterpret_cast<const float2 *>(v.squares);
#pragma unroll 4
  for (uint32_t i = targets.x + threadIdx.x; i < targets.y; i += CHUNK_THREADS) {
    const float2 both = squares[i];
    sum[0] += both.x;
    sum[1] += both.y;
    largest[0] = fmaxf(largest[0], both.x);
    largest[1] = fmaxf(largest[1], both.y);
    if (!v.field) continue;
    const Sum whole = v.field[i];
    const double x = whole.x * v.unit, y = whole.y * v.unit, z = whole.z * v.unit;
    sum[2] += x * x + y * y + z * z;
  }
  double all[5];
  for (unsigned k = 0; k < 3; k++) all[k] = joined_by_chunk<true>(sum[k], held);
  for (unsigned k = 0; k < 2; k++) all[3 + k] = joined_by_chunk<false>(largest[k], held);
  if (threadIdx.x == 0)
    for (unsigned k = 0; k < 5; k++) v.sums[5 * size_t(chunk) + k] = all[k];
}

// Of the targets of a chunk that are not in the sample for certain the sums of their squares and
// their number, and the number of the others.
__global__ void __launch_bounds__(CHUNK_THREADS) error_rest(DrawView v) {
  __shared__ double held[CHUNK_THREADS];
  const DrawPlan *plan = reinterpret_cast<const DrawPlan *>(v.plan);
  if (plan->goes_on == 0) return;
  const unsigned chunk = v.first + blockIdx.x;
  const uint2 targets = targets_of(v, chunk);
  const Draws draws = plan->draws;
  double sum[4] = {};
  const float2 *squares = reinterpret_cast<const float2 *>(v.squares);
#pragma unroll 4
  for (uint32_t i = targets.x + threadIdx.x; i < targets.y; i += CHUNK_THREADS) {
    const float2 both = squares[i];
    const bool certain = draws.of(both) >= 1;
    sum[0] += certain ? 0 : both.x;
    sum[1] += certain ? 0 : both.y;
    sum[2] += !certain;
    sum[3] += certain;
  }
  for (unsigned k = 0; k < 4; k++) {
    const double all = joined_by_chunk<true>(sum[k], held);
    if (threadIdx.x == 0) v.sums[5 * size_t(chunk) + k] = all;
  }
}

// From the sums of chunks how often targets are drawn, and where along the drawing each chunk
// begins, and among those that are there for certain. One block, a thread a chunk. `v.again` after
// error_rest.
__global__ void __launch_bounds__(ALONE) error_starts(DrawView v) {
  __shared__ double warps[ALONE / 32], held[ALONE];
  DrawPlan *to = reinterpret_cast<DrawPlan *>(v.plan);
  const DrawPlan before = v.again ? *to : DrawPlan{};
  if (v.again && before.goes_on == 0) return;
  const unsigned me = threadIdx.x;
  const bool there = me < v.chunks;
  const double all = double(v.count);
  double own[5] = {}, total[4];
  if (there)
    for (unsigned k = 0; k < 5; k++) own[k] = v.sums[5 * size_t(me) + k];
  for (unsigned k = 0; k < 4; k++) total[k] = sum_of_block(own[k], warps);
  const double count = v.again ? total[2] : all, certain = v.again ? total[3] : 0;
  const uint2 targets = targets_of(v, min(me, v.chunks - 1));
  const double own_count = v.again ? own[2] : double(targets.y - targets.x), left = v.size - certain;
  const bool known = v.again || (total[0] > 0 && total[1] > 0 && isfinite(total[0]) && isfinite(total[1]));
  const double none[2] = {};
  const Draws draws = draws_of_rest(count, known ? total : none, left, v.even * v.size);
  const double part = there ? draws.even * own_count + draws.by_squares[0] * own[0] + draws.by_squares[1] * own[1] : 0;
  const double reached = running_sum<ALONE>(known ? part : there ? draws.even * own_count : 0, held, warps);
  // The largest squares say whether any target may be there for certain.
  double most = 0;
  if (!v.again && known) {
    held[me] = there ? draws.of(make_float2(own[3], own[4])) : 0;
    __syncthreads();
    for (unsigned k = 0; k < v.chunks; k++) most = fmax(most, held[k]);
  }
  __syncthreads();
  const double sure_before = running_sum<ALONE>(v.again && there ? own[3] : 0, held, warps);
  if (there) {
    v.starts[me + 1] = me + 1 == v.chunks ? left : fmin(reached, left);
    v.sure[me + 1] = sure_before;
  }
  if (me == 0) {
    v.starts[0] = v.sure[0] = 0;
    if (!v.again)
      for (unsigned k = 0; k < 3; k++) v.totals[k] = total[k];
    for (unsigned k = 0; k < 2; k++) v.totals[3 + k] = total[k];
    DrawPlan plan;
    plan.chosen = v.again ? before.draws : Draws{};
    plan.draws = draws;
    plan.certain = certain;
    plan.goes_on = v.again ? certain > 0 : most >= 1;
    *to = plan;
  }
}

// Draws the targets of a chunk. A slot belongs to the target at which it is passed; chunks and
// threads agree on where they begin. Those that are there for certain have the last slots, and
// weights below zero.
__global__ void __launch_bounds__(CHUNK_THREADS) error_draw(DrawView v) {
  __shared__ double starts[CHUNK_THREADS + 1], held[CHUNK_THREADS], warps[CHUNK_THREADS / 32];
  const unsigned chunk = v.first + blockIdx.x;
  const uint2 targets = targets_of(v, chunk);
  const uint32_t each = (targets.y - targets.x + CHUNK_THREADS - 1) / CHUNK_THREADS;
  const uint32_t begin = min(targets.x + each * threadIdx.x, targets.y), end = min(begin + each, targets.y);
  const DrawPlan plan = *reinterpret_cast<const DrawPlan *>(v.plan);
  const double weight = double(v.size) / v.count, left = v.size - plan.certain;
  const float2 *squares = reinterpret_cast<const float2 *>(v.squares);
  const auto is_certain = [&](float2 both) { return plan.certain > 0 && plan.chosen.of(both) >= 1; };
  const auto passed = [&](double reached) {
    const double place = fmin(reached, left);
    const unsigned draw = place;
    return draw + (place - draw > spread(draw));
  };
  const double limit = v.starts[chunk + 1];
  const bool any_sure = v.sure[chunk] != v.sure[chunk + 1];
  if (passed(v.starts[chunk]) == passed(limit) && !any_sure) return;
  double own = 0, sure = 0;
  for (uint32_t i = begin; i < end; i++) {
    const float2 both = squares[i];
    const bool certain = is_certain(both);
    own += certain ? 0 : plan.draws.of(both);
    sure += certain;
  }
  const double upto = fmin(v.starts[chunk] + running_sum<CHUNK_THREADS>(own, held, warps), limit);
  starts[threadIdx.x + 1] = targets.x + each * (threadIdx.x + 1) >= targets.y ? limit : upto;
  if (threadIdx.x == 0) starts[0] = v.starts[chunk];
  __syncthreads();
  unsigned next_sure = left + v.sure[chunk] + (running_sum<CHUNK_THREADS>(sure, held, warps) - sure);
  double reached = starts[threadIdx.x];
  unsigned slot = passed(reached);
  for (uint32_t i = begin; i < end; i++) {
    const float2 both = squares[i];
    const double often = plan.draws.of(both);
    const bool certain = is_certain(both);
    if (certain) {
      v.picked[next_sure] = i;
      v.weight[next_sure++] = -weight;
    }
    reached = i + 1 == end ? starts[threadIdx.x + 1] : fmin(reached + (certain ? 0 : often), starts[threadIdx.x + 1]);
    const unsigned next = passed(reached);
    for (; slot < next; slot++) {
      v.picked[slot] = i;
      v.weight[slot] = weight / often;
    }
  }
}
}
