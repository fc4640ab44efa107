# How scripts/setup compiles HDF5: in two thirds of the time of -O3, and files are written and read as fast (docs/building.md).
set(CMAKE_C_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "")
