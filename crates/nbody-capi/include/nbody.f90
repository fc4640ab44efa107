! nbody.f90: the Fortran interface of libnbody. Compile this file with your program.
!
! Names, codes and members are those of nbody.h, which documents them. The arrays [n][3] of C are
! (3, n) here: x, y, z of the first point, then of the second. Arguments that are NULL in C are
! left out. Texts end with c_null_char and are passed by c_loc; they must have the attribute target.
module nbody
  use, intrinsic :: iso_c_binding
  implicit none
  private

  public :: nbody_options, nbody_result
  public :: nbody_options_init, nbody_evaluate, nbody_last_error, nbody_error_text, nbody_version
  public :: nbody_solver_new, nbody_solver_run, nbody_solver_free

  integer(c_int), parameter, public :: NBODY_OK = 0
  integer(c_int), parameter, public :: NBODY_ERROR_REQUEST = 1
  integer(c_int), parameter, public :: NBODY_ERROR_DATA = 2
  integer(c_int), parameter, public :: NBODY_ERROR_TOLERANCE = 3
  integer(c_int), parameter, public :: NBODY_ERROR_DEVICE = 4
  integer(c_int), parameter, public :: NBODY_ERROR_INTERNAL = 5

  ! Options of a sum. Set all members by nbody_options_init before you change some.
  type, bind(c) :: nbody_options
    integer(c_size_t) :: size
    type(c_ptr) :: kernel
    type(c_ptr) :: softening
    type(c_ptr) :: surroundings
    type(c_ptr) :: method
    type(c_ptr) :: precision
    type(c_ptr) :: device
    real(c_double) :: tolerance
    real(c_double) :: box(3)
    integer(c_int64_t) :: dimension
    integer(c_int64_t) :: order
    real(c_double) :: theta
    integer(c_int64_t) :: leaf_size
    integer(c_int64_t) :: threads
    integer(c_int64_t) :: check
    integer(c_int64_t) :: exclusion_count
    ! Rows counted from 0, as in C.
    type(c_ptr) :: exclusions
  end type

  ! What is known of a sum. Set size to c_sizeof of it before the call.
  type, bind(c) :: nbody_result
    integer(c_size_t) :: size
    real(c_double) :: seconds
    real(c_double) :: check_seconds
    integer(c_int64_t) :: coincident_pairs
    type(c_ptr) :: method
    type(c_ptr) :: precision
    integer(c_int64_t) :: order
    real(c_double) :: theta
    integer(c_int64_t) :: leaf_size
    integer(c_int64_t) :: gpu
    integer(c_int64_t) :: sample
    real(c_double) :: rms
    real(c_double) :: median
    real(c_double) :: p99
    real(c_double) :: max
    real(c_double) :: l2
    real(c_double) :: potential
    integer(c_int64_t) :: floored
    real(c_double) :: rms_low
    real(c_double) :: rms_high
    real(c_double) :: l2_low
    real(c_double) :: l2_high
  end type

  interface
    function nbody_options_init(options, size) bind(c) result(code)
      import
      type(nbody_options), intent(inout) :: options
      integer(c_size_t), value :: size
      integer(c_int) :: code
    end function

    function nbody_evaluate(options, n, sources, strengths, m, targets, potential, field, result) &
      bind(c) result(code)
      import
      type(nbody_options), intent(in), optional :: options
      integer(c_int64_t), value :: n
      real(c_double), intent(in) :: sources(*), strengths(*)
      integer(c_int64_t), value :: m
      real(c_double), intent(in), optional :: targets(*)
      real(c_double), intent(inout), optional :: potential(*), field(*)
      type(nbody_result), intent(inout), optional :: result
      integer(c_int) :: code
    end function

    function nbody_solver_new(solver, options) bind(c) result(code)
      import
      type(c_ptr), intent(out) :: solver
      type(nbody_options), intent(in), optional :: options
      integer(c_int) :: code
    end function

    function nbody_solver_run(solver, n, sources, strengths, m, targets, potential, field, result) &
      bind(c) result(code)
      import
      type(c_ptr), value :: solver
      integer(c_int64_t), value :: n
      real(c_double), intent(in) :: sources(*), strengths(*)
      integer(c_int64_t), value :: m
      real(c_double), intent(in), optional :: targets(*)
      real(c_double), intent(inout), optional :: potential(*), field(*)
      type(nbody_result), intent(inout), optional :: result
      integer(c_int) :: code
    end function

    subroutine nbody_solver_free(solver) bind(c)
      import
      type(c_ptr), value :: solver
    end subroutine

    function nbody_last_error() bind(c) result(text)
      import
      type(c_ptr) :: text
    end function

    function nbody_version() bind(c) result(text)
      import
      type(c_ptr) :: text
    end function
  end interface

contains

  ! The text of the last call of this thread that failed.
  function nbody_error_text() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: bytes(:)
    integer :: i, length
    interface
      function strlen(text) bind(c) result(length)
        import
        type(c_ptr), value :: text
        integer(c_size_t) :: length
      end function
    end interface

    length = int(strlen(nbody_last_error()))
    call c_f_pointer(nbody_last_error(), bytes, [length])
    allocate (character(len=length) :: text)
    do i = 1, length
      text(i:i) = bytes(i)
    end do
  end function
end module
