# How scripts/setup compiles HDF5: in two thirds of the time of -O3 (docs/building.md). It copies and stores, and computes little.
set(CMAKE_C_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "")
