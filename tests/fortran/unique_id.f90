! A job of one PE, without a launcher.
program unique_id
  use shmem
  use shmemx
  use checks
  implicit none
  type(shmemx_uniqueid_t) :: id
  integer :: provided, ierr
  ierr = shmemx_get_uniqueid(id)
  call expect(ierr == 0 .and. any(id%opaque /= 0), 'shmemx_get_uniqueid')
  ierr = shmemx_init_uniqueid(id, 0, 1)
  call expect(ierr == 0, 'shmemx_init_uniqueid')
  ierr = shmemx_init_thread_uniqueid(id, 0, 1, SHMEM_THREAD_FUNNELED, provided)
  call expect(ierr == 0 .and. provided == SHMEM_THREAD_MULTIPLE, 'shmemx_init_thread_uniqueid')
  call start()
  call expect(n == 1, 'the number of PEs')
  call shmem_finalize()
  call pass('unique_id')
end program
