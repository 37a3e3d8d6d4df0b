! Which variables of a Fortran program are symmetric, arrays by shmem_alloc, and what the generic names take.
module of_a_module
  use shmem
  implicit none
  real(c_double), target :: in_module(2, 3) = -1
  integer(c_int64_t), target :: initialized = 5
  integer(c_int), target :: uninitialized, uninitialized_array(4)
end module

program arrays
  use of_a_module
  use shmem
  use checks
  implicit none
  real(c_double), target, save :: in_program(6)   ! without an initial value a variable is static by save alone
  integer(c_int), target, save :: one_in_program
  real(c_double), target, allocatable :: private(:)
  integer(c_int), target :: in_common(2)
  common /block/ in_common
  call shmem_init()
  call start()
  call static_data()
  call allocated()
  call shapes_of_allocated()
  call every_kind()
  call ranks()
  call optional_arguments()
  call texts()
  call pass('arrays')

contains

  subroutine static_data()
    integer(c_int32_t), target, save :: saved = 0, not_initialized
    allocate(private(6))
    private = me
    in_common = 0
    in_program = -1
    one_in_program = -1
    uninitialized = -1
    uninitialized_array = -1
    not_initialized = -1
    call shmem_barrier_all()
    call shmem_put(in_program, private, 6_c_size_t, right)
    call shmem_put(in_module, private, 6_c_size_t, right)
    call shmem_p(initialized, 100_c_int64_t + me, right)
    call shmem_p(saved, me, right)
    call shmem_p(in_common(2), me, right)
    call shmem_p(one_in_program, me, right)
    call shmem_p(uninitialized, me, right)
    call shmem_put(uninitialized_array, [me, me, me], 3_c_size_t, right)
    call shmem_p(not_initialized, me, right)
    call shmem_barrier_all()
    call expect(all(in_program == left), 'a variable of the main program')
    call expect(one_in_program == left, 'a scalar of the main program')
    call expect(uninitialized == left .and. all(uninitialized_array == [left, left, left, -1]), 'not initialized')
    call expect(not_initialized == left, 'a saved variable that is not initialized')
    call expect(all(in_module == left), 'a variable of a module')
    call expect(initialized == 100 + left, 'an initialized variable of a module')
    call expect(saved == left, 'a saved variable')
    call expect(in_common(1) == 0 .and. in_common(2) == left, 'a common block')
    call expect(shmem_addr_accessible(c_loc(private), right) == 0, 'allocate is not symmetric')
  end subroutine

  subroutine allocated()
    real(c_float), pointer :: line(:)
    integer(c_int64_t), pointer, contiguous :: plane(:, :)
    complex(c_double_complex), pointer :: space(:, :, :)
    integer(c_int8_t), pointer :: none(:)
    logical(c_bool), pointer :: flags(:)
    integer :: i
    call shmem_alloc(line, 100)
    call shmem_alloc(plane, [3, 5])
    call shmem_alloc(space, [2, 3, 4])
    call shmem_alloc(none, 0)
    call shmem_alloc(flags, [7])
    call expect(size(line) == 100 .and. all(shape(plane) == [3, 5]) .and. all(shape(space) == [2, 3, 4]), 'shapes')
    call expect(associated(none) .and. size(none) == 0 .and. size(flags) == 7, 'an array without elements')
    plane = reshape([(int(100 * me + i, c_int64_t), i = 1, 15)], [3, 5])
    space = cmplx(0, 0, c_double_complex)
    call shmem_barrier_all()
    call shmem_put(plane(1, 5), plane(1, 1), 3_c_size_t, right) ! a column, from its first element on
    call shmem_put(space(1, 1, 1), [cmplx(me, 1, c_double_complex)], 1_c_size_t, right)
    call shmem_put(line, [(real(i, c_float), i = 1, 100)], 100_c_size_t, right)
    call shmem_barrier_all()
    call expect(all(plane(:, 5) == [(100 * left + i, i = 1, 3)]) .and. plane(3, 4) == 100 * me + 12, 'a column')
    call expect(space(1, 1, 1) == cmplx(left, 1) .and. space(2, 1, 1) == 0 .and. line(99) == 99, 'arrays')
    call shmem_dealloc(line)
    call expect(.not. associated(line), 'shmem_dealloc')
    call shmem_dealloc(plane)
    call shmem_dealloc(space)
    call shmem_dealloc(none)
    call shmem_dealloc(flags)
  end subroutine

  ! What has no room: shapes of more bytes than a number holds, and negative extents. What has no elements has room.
  subroutine shapes_of_allocated()
    real(c_float), pointer :: line(:)
    real(c_double), pointer :: space(:, :, :)
    integer, parameter :: most = huge(0)
    integer :: i
    integer, parameter :: too_large(3, 7) = reshape([2 ** 22, 2 ** 22, 2 ** 17, most, most, 4, most, most, most, &
      2 ** 30, 2 ** 30, 1, -1, 1, 1, -2, -2, 3, 0, -1, 4], [3, 7])
    integer, parameter :: empty(3, 4) = reshape([0, 0, 0, 0, 3, 4, 3, 4, 0, most, 0, most], [3, 4])
    call shmem_alloc(line, 2 ** 30) ! more than the heap of the test has
    call expect(.not. associated(line), 'no room')
    call shmem_dealloc(line)
    call shmem_alloc(line, -1)
    call expect(.not. associated(line), 'a negative number of elements')
    do i = 1, size(too_large, 2)
      call shmem_alloc(space, too_large(:, i))
      call expect(.not. associated(space), 'a shape without room')
      call shmem_dealloc(space)
    end do
    do i = 1, size(empty, 2)
      call shmem_alloc(space, empty(:, i))
      call expect(associated(space) .and. size(space) == 0 .and. all(shape(space) == empty(:, i)), 'an empty shape')
      call expect(shmem_addr_accessible(c_loc(space), right) == 1, 'an empty array''s place')
      call shmem_dealloc(space)
      call expect(.not. associated(space), 'shmem_dealloc of an empty array')
    end do
  end subroutine

  subroutine every_kind()
    integer(c_int16_t), pointer :: a(:), a2(:, :), a3(:, :, :)
    integer(c_int32_t), pointer :: b(:), b2(:, :), b3(:, :, :)
    real(c_double), pointer :: c(:), c2(:, :), c3(:, :, :)
    complex(c_float_complex), pointer :: d(:), d2(:, :), d3(:, :, :)
    call shmem_alloc(a, 3); call shmem_alloc(a2, [3, 2]); call shmem_alloc(a3, [1, 2, 3])
    call shmem_alloc(b, 3); call shmem_alloc(b2, [3, 2]); call shmem_alloc(b3, [1, 2, 3])
    call shmem_alloc(c, 3); call shmem_alloc(c2, [3, 2]); call shmem_alloc(c3, [1, 2, 3])
    call shmem_alloc(d, 3); call shmem_alloc(d2, [3, 2]); call shmem_alloc(d3, [1, 2, 3])
    a = 1; a2 = 2; a3 = 3; b = 4; b2 = 5; b3 = 6; c = 7; c2 = 8; c3 = 9; d = 10; d2 = 11; d3 = 12
    call expect(all(a == 1) .and. all(a2 == 2) .and. all(a3 == 3) .and. all(b == 4) .and. all(b2 == 5) .and. &
                all(b3 == 6) .and. all(c == 7) .and. all(c2 == 8) .and. all(c3 == 9) .and. all(d == 10) .and. &
                all(d2 == 11) .and. all(d3 == 12), 'arrays that overlap')
    call shmem_dealloc(a); call shmem_dealloc(a2); call shmem_dealloc(a3)
    call shmem_dealloc(b); call shmem_dealloc(b2); call shmem_dealloc(b3)
    call shmem_dealloc(c); call shmem_dealloc(c2); call shmem_dealloc(c3)
    call shmem_dealloc(d); call shmem_dealloc(d2); call shmem_dealloc(d3)
  end subroutine

  ! Every pair of ranks that a generic has.
  subroutine ranks()
    integer(c_int), target, save :: one(8), two(2, 4), three(2, 2, 2)
    integer(c_int) :: from1(8), from2(2, 4), from3(2, 2, 2)
    integer :: pair, i
    from1 = [(10 * me + i, i = 1, 8)]
    from2 = reshape(from1, [2, 4])
    from3 = reshape(from1, [2, 2, 2])
    do pair = 1, 8
      one = 0; two = 0; three = 0
      call shmem_barrier_all()
      select case (pair)
      case (1); call shmem_put(one, from1, 8_c_size_t, right)
      case (2); call shmem_put(one(1), from2(1, 1), 8_c_size_t, right)
      case (3); call shmem_put(one(1), from1, 8_c_size_t, right)
      case (4); call shmem_put(one, from2(1, 1), 8_c_size_t, right)
      case (5); call shmem_put(one, from2, 8_c_size_t, right)
      case (6); call shmem_put(two, from1, 8_c_size_t, right)
      case (7); call shmem_put(two, from2, 8_c_size_t, right)
      case (8); call shmem_put(three, from3, 8_c_size_t, right)
      end select
      call shmem_barrier_all()
      select case (pair)
      case (1:5); call expect(all(one == from1 + 10 * (left - me)), 'a put of these ranks')
      case (6:7); call expect(all(two == from2 + 10 * (left - me)), 'a put to rank 2')
      case (8); call expect(all(three == from3 + 10 * (left - me)), 'a put to rank 3')
      end select
      call shmem_sync_all()
    end do
    ! By its own name a function takes arrays of any rank.
    call shmem_int_put(three, from2, 8_c_size_t, right)
    call shmem_barrier_all()
    call expect(all(three == from3 + 10 * (left - me)), 'shmem_int_put')
  end subroutine

  subroutine optional_arguments()
    integer(c_int), target, save :: words(3) = 0
    integer(c_int), allocatable :: status(:)
    integer(c_size_t) :: indices(3)
    call shmem_sync_all()
    call shmem_put(words, [1, 2, 3], 3_c_size_t, right)
    call shmem_wait_until_all(words, 3_c_size_t, cmp = SHMEM_CMP_NE, cmp_value = 0)
    call shmem_wait_until_all(words, 3_c_size_t, status, SHMEM_CMP_NE, 0) ! not allocated: as if left out
    call expect(shmem_test_all(words, 3_c_size_t, [0, 0, 1], SHMEM_CMP_LT, 3) == 1, 'a status')
    call expect(shmem_test_all(words, 3_c_size_t, cmp = SHMEM_CMP_LT, cmp_value = 3) == 0, 'no status')
    ! Indices count from 0, and none is SIZE_MAX, which Fortran has as -1.
    call expect(shmem_test_any(words, 3_c_size_t, cmp = SHMEM_CMP_EQ, cmp_value = 3) == 2, 'an index')
    call expect(shmem_test_any(words, 3_c_size_t, cmp = SHMEM_CMP_EQ, cmp_value = 4) == -1, 'no index')
    call expect(shmem_test_some(words, 3_c_size_t, indices, cmp = SHMEM_CMP_LE, cmp_value = 1) == 1 .and. &
                indices(1) == 0, 'indices')
  end subroutine

  ! The generics take texts and arrays of them, as other types: a text stands for what begins there.
  subroutine texts()
    character(kind=c_char, len=12), target, save :: text, got, several(2)
    character(kind=c_char), target, save :: letters(12)
    character(len=:), allocatable :: greeting
    integer :: ierr
    text = ''
    letters = '.'
    several = ''
    greeting = 'hello, ' // 'world'
    call shmem_barrier_all()
    call shmem_char_put(text, 'from the left', 12_c_size_t, right)
    call shmem_put(letters, ['a', 'b', 'c'], 3_c_size_t, right)
    call shmem_put(several, greeting, 12_c_size_t, right)
    call shmem_put(several(2)(3:), [greeting], 5_c_size_t, right)
    call shmem_barrier_all()
    call expect(text == 'from the lef', 'a text')
    call expect(all(letters(1:4) == ['a', 'b', 'c', '.']), 'an array of characters')
    call expect(several(1) == 'hello, world' .and. several(2) == '  hello', 'an array of texts')
    got = ''
    call shmem_get(got(2:), text, 8_c_size_t, right)
    call expect(got == ' from the', 'a get of a text')
    call shmem_sync_all()
    call shmem_put(text(6:), greeting, 7_c_size_t, right)
    call shmem_barrier_all()
    call expect(text == 'from hello, ', 'a part of a text')
    write(got, '(i0)') 10 + me
    ierr = shmem_broadcast(SHMEM_TEAM_WORLD, several(1), got, 12_c_size_t, n - 1)
    write(got, '(i0)') 9 + n
    call expect(ierr == 0 .and. several(1) == got, 'a broadcast of a text')
  end subroutine
end program
