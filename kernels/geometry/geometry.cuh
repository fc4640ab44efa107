// The arguments of the kernels that make trees and lists, by value. crates/fmm-cuda/src/geometry/view.rs mirrors every struct.
#pragma once
#include <cstddef>
#include <cstdint>

// Levels below the root that a key resolves.
constexpr unsigned KEY_LEVELS = 21;
// Threads of a block.
constexpr unsigned THREADS = 256;
// Digits of a key and their values: 8 bits each.
constexpr unsigned DIGITS = 8, RADIX = 256;
// Keys that a thread and a block of a pass of the sort hold.
constexpr unsigned SORT_ITEMS = 16, SORT_TILE = THREADS * SORT_ITEMS;
// Words of the map of leaves that a thread and a block count.
constexpr unsigned WORDS = 4, WORD_TILE = THREADS * WORDS;
// The most targets that a block of the traversal holds, one for each lane of a warp.
constexpr unsigned TARGETS = 32;

// What is told to the host about a tree: places in `state`.
constexpr unsigned STATE_LEAVES = 24, STATE_DEEP = 25, STATE_COINCIDENT = 26, STATE_CROWDED = 27, STATE_KINDS = 28;
// Kinds of cells: level and octant, that is 8 level + octant. The state ends with the number of cells of each.
constexpr unsigned KINDS = 8 * (KEY_LEVELS + 1), STATE_SIZE = STATE_KINDS + KINDS;
// Cells of one kind that a block of the operators takes at once.
constexpr unsigned TILE_CELLS = 64;

// Keys and their sort.
struct SortView {
  const double *position;      // [n][3]
  uint32_t *bins;              // [DIGITS][RADIX]: counts, then first places
  const uint64_t *key;         // [n] of a pass
  const uint32_t *index;       // [n]; null: 0, 1, 2, ...
  uint64_t *key_out;           // [n]
  uint32_t *index_out;         // [n]
  uint64_t *status;            // [tiles][RADIX]
  uint32_t *ticket;
  double corner[3], side;      // of the cube
  uint64_t epoch;
  uint32_t n, digit;
};

// A tree that grows level by level.
struct GrowthView {
  const double *position;      // [n][3]
  uint64_t *key;               // [n], sorted
  uint32_t *order;             // [n]
  uint32_t *bodies;            // [capacity][2]
  uint32_t *children;          // [capacity][2]
  uint32_t *parent;            // [capacity]
  uint32_t *skip;              // [capacity]: see CellsView
  uint32_t *leaves;            // [capacity]
  double *center;              // [capacity][3]
  uint16_t *level;             // [capacity]
  uint8_t *octant;             // [capacity]
  uint32_t *map;               // [words]: a bit for each body, set for the first of a leaf
  uint32_t *rank;              // [words]: leaves before those of a word
  uint64_t *kind;              // [capacity]: 8 level + octant, to be sorted by
  uint32_t *bins;              // [RADIX]: cells of each kind
  uint64_t *state;             // [STATE_SIZE]: first cell of each level, and the places above
  uint64_t *status;            // [tiles]
  uint32_t *ticket;
  double corner[3], side;      // of the cube
  uint64_t epoch;
  uint32_t n, leaf_size, capacity, depth;
};

// Cells by kind, cut into tiles.
struct TilesView {
  const uint32_t *sorted;        // [cells]: by kind, then by number
  uint32_t *tiles;               // [tiles][TILE_CELLS]: cells of one kind, then NO_CELL
  uint32_t first[KINDS + 1];     // of each kind in `sorted`
  uint32_t first_tile[KINDS + 1];
};

// How a sample of bodies lies.
struct SurveyView {
  const double *position;        // [][3]: every step-th is in the sample
  double *sample;                // [count][3]
  const uint64_t *key;           // [count], sorted
  double *bounds;                // [blocks][6]: smallest and largest coordinates of the share of each block
  uint32_t *bins;                // [DIVISIONS^3]: bodies of the sample in equal bins of the cube
  uint64_t *found;               // [FOUND_SIZE]
  double corner[3], side;        // of the cube
  uint64_t step;
  uint32_t count, blocks;
  uint32_t apart;                // between neighbours in the order of keys
  uint32_t unused;
};

// Bins along an axis, and what is told to the host of a sample: pairs in bins, bounds, pairs of neighbours by the level of the
// smallest cell that they share.
constexpr unsigned DIVISIONS = 16;
constexpr unsigned FOUND_BOUNDS = 1, FOUND_LEVELS = 7, FOUND_SIZE = FOUND_LEVELS + KEY_LEVELS + 1;

// A finished tree.
struct CellsView {
  const uint32_t *bodies, *children, *parent;
  const uint32_t *skip;        // the cell after those below a cell, in the order of a recursion
  const double *center;
  const uint16_t *level;
  const uint8_t *octant;
  double side;
};

struct Pair {
  uint32_t source, cls;
};

// A source cell that a target cell has not yet dealt with; fmm-core's `lists/traverse.rs` says more.
struct alignas(16) Near {
  uint32_t source, image;
  int16_t offset[3];
  uint16_t direct;
};

// Where lists begin: a cell or an image of one, by its offset from the target and the class of the image.
struct Image {
  int32_t offset[3];
  uint32_t cls;
  uint32_t source;              // the cell that it is one of
};

// M2L, M2P, P2L, P2P, and what is left to the next level.
constexpr unsigned LISTS = 4, COUNTS = 5;

// One level of the traversal.
struct ListsView {
  CellsView targets, sources;
  uint64_t *start[LISTS];      // [cells + 1]
  Pair *pairs[LISTS];          // [capacity]
  uint64_t capacity[COUNTS];   // of each list, and of `near` and `near_out`
  const Near *near;            // of the level above
  const uint64_t *near_start;
  Near *near_out;
  uint64_t *near_out_start;
  uint64_t *total;             // [levels + 1][COUNTS]: pairs above each level, and what the level above left
  uint64_t *status;            // [COUNTS][tiles]
  uint32_t *ticket;
  const Image *images;         // [cells of level `base`][image_count]: those that lists know
  double point_separation2, min_distance;
  double separation;           // that of boxes, squared and in longest sides; cubes have `separation2`
  double diagonal;             // of a cell in longest sides
  double sides[3];             // of the periodic box, or 0
  double aspect[3];            // the sides of a cell over the longest
  uint64_t m2l_min_pairs, m2p_min_bodies, p2l_min_bodies;
  uint64_t epoch;
  uint32_t first, cells;       // of the level
  uint32_t parents;            // first of the level above
  uint32_t depth;              // number of the level
  int32_t radius[3];           // of the classes
  int32_t separation2;         // rounded up; 0: cells are no cubes
  uint32_t last;               // one past the last cell of the tree
  uint32_t rows;               // targets of a block, at most TARGETS
  uint32_t image_count;
  uint32_t base;               // the level that lists begin at
};

// No cell.
constexpr uint32_t NO_CELL = ~uint32_t(0);

extern "C" __device__ const unsigned geometry_layout[] = {
    THREADS, SORT_TILE, WORD_TILE, TARGETS, STATE_SIZE,
    sizeof(SortView), offsetof(SortView, corner), offsetof(SortView, epoch), offsetof(SortView, digit),
    sizeof(GrowthView), offsetof(GrowthView, state), offsetof(GrowthView, corner), offsetof(GrowthView, epoch),
    offsetof(GrowthView, depth),
    TILE_CELLS, KINDS, sizeof(TilesView), offsetof(TilesView, first_tile),
    DIVISIONS, FOUND_SIZE, sizeof(SurveyView), offsetof(SurveyView, corner), offsetof(SurveyView, apart),
    sizeof(CellsView), sizeof(Pair), sizeof(Near), sizeof(Image),
    sizeof(ListsView), offsetof(ListsView, near), offsetof(ListsView, point_separation2), offsetof(ListsView, epoch),
    offsetof(ListsView, last), offsetof(ListsView, sides), offsetof(ListsView, image_count),
};
