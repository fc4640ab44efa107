! Prints the sizes of the structures.
program sizes
  use, intrinsic :: iso_c_binding
  use nbody
  implicit none
  type(nbody_options) :: options
  type(nbody_result) :: result
  print '(2i6)', c_sizeof(options), c_sizeof(result)
end program
