! A stencil in Fortran: heat in a plane whose columns are divided among the PEs. Each step puts the outermost columns
! into the halos of the neighbors, with a signal. The answer is checked: what is hot spreads, and nothing is lost.
program halo
  use shmem
  implicit none
  integer, parameter :: rows = 32, columns = 16, steps = 50
  real(c_double), pointer :: now(:, :), next(:, :), swapped(:, :) ! columns 0 and columns + 1 are halos
  integer(c_int64_t), target, save :: signals(2) = 0             ! of the left neighbor, and of the right one
  real(c_double), target, save :: heat = 0, total = 0
  integer(c_int64_t) :: seen
  integer :: me, n, left, right, step, i, j, failed

  call shmem_init()
  me = shmem_my_pe()
  n = shmem_n_pes()
  left = mod(me + n - 1, n)
  right = mod(me + 1, n)
  call shmem_alloc(now, [rows, columns + 2])
  call shmem_alloc(next, [rows, columns + 2])
  if (.not. associated(now) .or. .not. associated(next)) call shmem_global_exit(1)
  now = 0
  if (me == 0) now(rows / 2, 2) = 1000
  call shmem_barrier_all()

  do step = 1, steps
    ! A column is contiguous: its first element says where it is.
    call shmem_put_signal(now(1, columns + 2), now(1, 2), int(rows, c_size_t), signals(2), 1_c_int64_t, &
                          SHMEM_SIGNAL_OP_ADD, left)
    call shmem_put_signal(now(1, 1), now(1, columns + 1), int(rows, c_size_t), signals(1), 1_c_int64_t, &
                          SHMEM_SIGNAL_OP_ADD, right)
    seen = shmem_signal_wait_until(signals(1), SHMEM_CMP_GE, int(step, c_int64_t))
    seen = shmem_signal_wait_until(signals(2), SHMEM_CMP_GE, int(step, c_int64_t))
    do j = 2, columns + 1
      do i = 1, rows
        next(i, j) = now(i, j) + 0.2d0 * (now(merge(rows, i - 1, i == 1), j) + now(merge(1, i + 1, i == rows), j) &
                                          + now(i, j - 1) + now(i, j + 1) - 4 * now(i, j))
      end do
    end do
    swapped => now
    now => next
    next => swapped
    call shmem_sync_all() ! no neighbor is still reading its halo
  end do

  heat = sum(now(:, 2:columns + 1))
  failed = shmem_sum_reduce(SHMEM_TEAM_WORLD, total, heat, 1_c_size_t)
  if (failed /= 0 .or. abs(total - 1000) > 1d-9 .or. minval(now(:, 2:columns + 1)) < 0) call shmem_global_exit(2)
  if (me == 0) print '(a, i0, a)', 'halo: pass on ', n, ' PEs'
  call shmem_dealloc(next)
  call shmem_dealloc(now)
  call shmem_finalize()
end program
