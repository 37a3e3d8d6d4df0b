! What the programs share: where a PE is in the ring of all, and the verdict.
module checks
  use shmem
  implicit none
  integer :: me, n, left, right

contains

  ! After shmem_init.
  subroutine start()
    me = shmem_my_pe()
    n = shmem_n_pes()
    right = mod(me + 1, n)
    left = mod(me + n - 1, n)
  end subroutine

  ! Ends the job with the name of what is wrong.
  subroutine expect(holds, what)
    use, intrinsic :: iso_fortran_env, only: error_unit
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    write(error_unit, '(a, i0, 2a)') 'PE ', me, ': wrong: ', what
    call shmem_global_exit(1_c_int)
  end subroutine

  subroutine pass(name)
    character(len=*), intent(in) :: name
    call shmem_barrier_all()
    if (me == 0) print '(2a, i0, a)', name, ': pass on ', n, ' PEs'
    call shmem_finalize()
  end subroutine

  ! Element k of PE j in reductions.
  pure integer function given(j, k)
    integer, intent(in) :: j, k
    given = 1 + mod(j + k, 2)
  end function
end module
