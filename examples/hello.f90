! The first program in Fortran: each PE writes its number into a variable of its right neighbor.
program hello
  use shmem
  implicit none
  integer(c_int), target, save :: from_left = -1 ! symmetric: every PE has one
  integer :: me, n
  call shmem_init()
  me = shmem_my_pe()
  n = shmem_n_pes()
  call shmem_p(from_left, me, mod(me + 1, n))
  call shmem_barrier_all()
  if (from_left /= mod(me + n - 1, n)) call shmem_global_exit(1)
  print '(3(a, i0))', 'PE ', me, ' of ', n, ': my left neighbor is ', from_left
  call shmem_finalize()
end program
