! Gravity of random bodies: potential, energy and the error of the forces.
!
!     gfortran $(pkg-config --variable=fortran nbody) sum.f90 $(pkg-config --libs nbody) -o sum && ./sum
program sum_of_gravity
  use, intrinsic :: iso_c_binding
  use nbody
  implicit none
  integer(c_int64_t), parameter :: n = 2000
  real(c_double) :: position(3, n), mass(n), potential(n), field(3, n), energy
  character(kind=c_char, len=32), target :: softening
  type(nbody_options) :: options
  type(nbody_result) :: result
  integer(c_int) :: code

  call random_number(position)
  mass = 1.0_c_double / n

  code = nbody_options_init(options, c_sizeof(options))
  softening = 'plummer:0.01' // c_null_char
  options%softening = c_loc(softening)
  options%tolerance = 1e-6_c_double
  options%check = 100
  result%size = c_sizeof(result)
  ! Without targets the sums are those at the bodies, and no body acts on itself.
  code = nbody_evaluate(options, n, position, mass, n, potential=potential, field=field, result=result)
  if (code /= NBODY_OK) then
    print '(2a)', 'sum: ', nbody_error_text()
    stop 1
  end if

  ! With G = 1 the gravitational potential is -potential, the acceleration -field.
  energy = -0.5_c_double * dot_product(mass, potential)
  print '(a, f16.12, a, es8.1, a, f8.3, a)', 'energy', energy, ', error of the forces', result%rms, ',', result%seconds, ' s'
  if (result%rms > options%tolerance) stop 1
end program
