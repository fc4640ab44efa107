// Direct sums by lists in a periodic box, whose sources may be images. Kernels that differ from 1/r at any distance have none.
#include "near/near.cuh"

extern "C" {
LISTS(box_newton, Newton, true)
LISTS(box_spline, Spline, true)
}
