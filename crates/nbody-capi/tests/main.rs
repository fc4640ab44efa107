//! Tests of libnbody: programs in C, C++ and Fortran, compiled against the libraries of this build.

mod common;

mod bits;
mod examples;
mod header;
mod install;
mod programs;
