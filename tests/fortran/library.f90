! What has no types: setup, memory, teams, contexts, order, locks, requests, plans, exchanges and progress.
program library
  use shmem
  use shmemx
  use checks
  implicit none
  integer :: provided, i, ierr
  integer(c_int), target, save :: flags(8)
  integer(c_long), target, save :: lock = 0, total = 0
  call expect(.not. is_initialized(), 'shmem_query_initialized before init')
  ierr = shmem_init_thread(SHMEM_THREAD_MULTIPLE, provided)
  call expect(ierr == 0 .and. provided == SHMEM_THREAD_MULTIPLE, 'shmem_init_thread')
  call start()
  call expect(is_initialized(), 'shmem_query_initialized')
  call queries()
  call memory()
  call teams()
  call contexts()
  call counters()
  call order()
  call locks()
  call requests()
  call plans()
  call exchanges()
  call progress()
  call pass('library')

contains

  logical function is_initialized()
    integer :: answer
    call shmem_query_initialized(answer)
    is_initialized = answer == 1
  end function

  subroutine queries()
    integer :: major, minor
    character(kind=c_char) :: name(SHMEM_MAX_NAME_LEN)
    call shmem_query_thread(provided)
    call expect(provided == SHMEM_THREAD_MULTIPLE, 'shmem_query_thread')
    call shmem_info_get_version(major, minor)
    call expect(major == SHMEM_MAJOR_VERSION .and. minor == SHMEM_MINOR_VERSION, 'shmem_info_get_version')
    call shmem_info_get_name(name)
    do i = 1, len(SHMEM_VENDOR_STRING)
      call expect(name(i) == SHMEM_VENDOR_STRING(i:i), 'shmem_info_get_name')
    end do
    call expect(name(i) == c_null_char, 'the end of shmem_info_get_name')
    call expect(shmem_pe_accessible(n - 1) == 1 .and. shmem_pe_accessible(n) == 0, 'shmem_pe_accessible')
    call expect(shmem_addr_accessible(c_loc(flags), right) == 1, 'shmem_addr_accessible')
    call expect(shmem_addr_accessible(c_null_ptr, right) == 0, 'shmem_addr_accessible')
    call expect(SHMEM_TEAM_WORLD /= SHMEM_TEAM_INVALID .and. SHMEM_TEAM_WORLD /= SHMEM_TEAM_SHARED, 'handles')
    call expect(SHMEM_CTX_DEFAULT /= SHMEM_CTX_INVALID, 'SHMEM_CTX_DEFAULT')
  end subroutine

  subroutine memory()
    type(c_ptr) :: a, b, near
    integer(c_long), pointer :: words(:), of_right(:)
    a = shmem_calloc(100_c_size_t, 8_c_size_t)
    call c_f_pointer(a, words, [100])
    call expect(all(words == 0), 'shmem_calloc')
    words = [(me * 100_c_long + i, i = 1, 100)]
    a = shmem_realloc(a, 1600_c_size_t)
    call c_f_pointer(a, words, [200])
    call expect(words(100) == me * 100 + 100, 'shmem_realloc')
    call shmem_barrier_all()
    near = shmem_ptr(a, right)
    call c_f_pointer(near, of_right, [200])
    call expect(of_right(7) == right * 100 + 7, 'shmem_ptr')
    near = shmem_team_ptr(SHMEM_TEAM_WORLD, a, left)
    call c_f_pointer(near, of_right, [200])
    call expect(of_right(8) == left * 100 + 8, 'shmem_team_ptr')
    b = shmem_align(4096_c_size_t, 64_c_size_t)
    call expect(mod(transfer(b, 0_c_intptr_t), 4096_c_intptr_t) == 0, 'shmem_align')
    call shmem_free(b)
    b = shmem_malloc_with_hints(64_c_size_t, ior(SHMEM_MALLOC_ATOMICS_REMOTE, SHMEM_MALLOC_SIGNAL_REMOTE))
    call expect(c_associated(b), 'shmem_malloc_with_hints')
    call shmem_free(b)
    call shmem_free(a)
  end subroutine

  subroutine teams()
    type(shmem_team_t) :: even, row, column, of_ctx
    type(shmem_team_config_t) :: config
    type(shmem_ctx_t) :: ctx
    integer :: translated
    config%num_contexts = 2
    ierr = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, config, SHMEM_TEAM_NUM_CONTEXTS, even)
    call expect(ierr == 0 .and. (even == SHMEM_TEAM_INVALID) .eqv. mod(me, 2) == 1, 'shmem_team_split_strided')
    if (even /= SHMEM_TEAM_INVALID) then
      call expect(shmem_team_my_pe(even) == me / 2 .and. shmem_team_n_pes(even) == (n + 1) / 2, 'numbers of a team')
      config%num_contexts = 0
      ierr = shmem_team_get_config(even, SHMEM_TEAM_NUM_CONTEXTS, config)
      call expect(ierr == 0 .and. config%num_contexts == 2, 'shmem_team_get_config')
      translated = shmem_team_translate_pe(even, shmem_team_n_pes(even) - 1, SHMEM_TEAM_WORLD)
      call expect(translated == (n - 1) / 2 * 2, 'shmem_team_translate_pe')
      call expect(shmem_team_sync(even) == 0 .and. shmem_sync(even) == 0, 'shmem_team_sync')
      ierr = shmem_team_create_ctx(even, SHMEM_CTX_SERIALIZED, ctx)
      call expect(ierr == 0 .and. ctx /= SHMEM_CTX_INVALID, 'shmem_team_create_ctx')
      ierr = shmem_ctx_get_team(ctx, of_ctx)
      call expect(ierr == 0 .and. of_ctx == even, 'shmem_ctx_get_team')
      call shmem_ctx_int_p(ctx, flags(1), 11, shmem_team_n_pes(even) - 1)
      call shmem_ctx_quiet(ctx)
      call expect(shmem_team_sync(even) == 0, 'shmem_team_sync')
      if (me == (n - 1) / 2 * 2) call expect(flags(1) == 11, 'a put of a team''s context')
      call shmem_ctx_destroy(ctx)
    end if
    call shmem_team_destroy(even) ! SHMEM_TEAM_INVALID is ignored
    ! Without configurations: the arguments behind them are named.
    ierr = shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, xaxis_mask = 0_c_long, xaxis_team = row, yaxis_mask = 0_c_long, &
                               yaxis_team = column)
    call expect(ierr == 0 .and. shmem_team_my_pe(row) == mod(me, 2) .and. shmem_team_my_pe(column) == me / 2, &
                'shmem_team_split_2d')
    call shmem_team_destroy(row)
    call shmem_team_destroy(column)
  end subroutine

  subroutine contexts()
    type(shmem_ctx_t) :: ctx
    type(shmem_ctx_session_config_t) :: session
    type(shmemx_ctx_info_t) :: info
    ierr = shmem_ctx_create(ior(SHMEM_CTX_PRIVATE, SHMEMX_CTX_ORDERED), ctx)
    call expect(ierr == 0, 'shmem_ctx_create')
    call expect(session%total_ops == -1, 'the default of total_ops')
    session%total_ops = 1
    call shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, session, SHMEM_CTX_SESSION_TOTAL_OPS)
    call shmem_p(ctx, flags(2), 12, right)
    call shmem_ctx_session_stop(ctx)
    call shmem_ctx_session_start(ctx, 0_c_long, config_mask = 0_c_long)
    call shmem_ctx_session_stop(ctx)
    call shmemx_ctx_quiet_local(ctx)
    do while (shmemx_ctx_quiet_test(ctx) == 0)
    end do
    ierr = shmemx_ctx_info(ctx, info)
    call expect(ierr == 0 .and. info%options == ior(SHMEM_CTX_PRIVATE, SHMEMX_CTX_ORDERED) .and. info%bytes >= 128 &
                .and. info%channels == 0 .and. info%rails == 0, 'shmemx_ctx_info')
    call shmem_barrier_all()
    call expect(flags(2) == 12, 'a put in a session')
    call shmem_ctx_destroy(ctx)
  end subroutine

  subroutine counters()
    integer(c_int) :: last
    last = shmemx_pcntr_num() - 1
    call expect(last > 10 .and. c_associated(shmemx_pcntr_name(last)) .and. &
                c_associated(shmemx_pcntr_description(last)) .and. shmemx_pcntr_get(last) >= 0, 'shmemx_pcntr')
  end subroutine

  subroutine order()
    integer(c_int64_t), target, save :: word
    word = 0
    call shmem_barrier_all()
    call shmem_put(flags(3), 13, 1_c_size_t, right)
    call shmem_fence()
    call shmem_ctx_fence(SHMEM_CTX_DEFAULT)
    call shmem_signal_set(word, 1_c_int64_t, right)
    call expect(shmem_signal_wait_until(word, SHMEM_CMP_GE, 1_c_int64_t) == 1, 'shmem_signal_set')
    call expect(flags(3) == 13, 'shmem_fence')
    call shmem_sync_all()
    call shmem_signal_add(SHMEM_CTX_DEFAULT, word, 4_c_int64_t, right)
    call shmem_ctx_signal_add(SHMEM_CTX_DEFAULT, word, 4_c_int64_t, right)
    call shmem_quiet()
    call shmem_ctx_quiet(SHMEM_CTX_DEFAULT)
    call shmem_pe_quiet([right], 1_c_size_t)
    call shmem_ctx_pe_quiet(SHMEM_CTX_DEFAULT, [right], 1_c_size_t)
    call shmem_sync_all()
    call expect(shmem_signal_fetch(word) == 9, 'shmem_signal_add')
    call shmem_sync_all()
    call shmem_signal_add(word, 1_c_int64_t, right)
    call shmem_barrier_all()
    call expect(shmem_signal_fetch(word) == 10, 'shmem_signal_add')
    call shmem_sync_all()
    call shmem_ctx_signal_set(SHMEM_CTX_DEFAULT, word, 2_c_int64_t, right)
    call shmem_barrier_all()
    call expect(word == 2, 'shmem_ctx_signal_set')
  end subroutine

  subroutine locks()
    integer(c_long) :: seen
    do i = 1, 20
      if (mod(i, 2) == 0) then
        call shmem_set_lock(lock)
      else
        do while (shmem_test_lock(lock) /= 0)
        end do
      end if
      seen = shmem_g(total, 0)
      call shmem_p(total, seen + 1, 0)
      call shmem_quiet()
      call shmem_clear_lock(lock)
    end do
    call shmem_barrier_all()
    call expect(shmem_long_g(total, 0) == 20 * n, 'locks')
  end subroutine

  subroutine requests()
    type(shmemx_request_t) :: one, two, several(3)
    integer(c_size_t) :: indices(3)
    integer(c_int), target :: source(8)
    source = me
    one = SHMEMX_REQUEST_NULL
    ierr = shmemx_request_allocate(two, SHMEMX_REQUEST_SHARED)
    call expect(ierr == 0 .and. two /= SHMEMX_REQUEST_NULL, 'shmemx_request_allocate')
    call shmem_barrier_all()
    call shmemx_request_begin(one)
    call shmem_put_nbi(flags, source, 4_c_size_t, right)
    call shmemx_request_end(one)
    call shmemx_request_fence(one)
    call shmemx_put_nbe(flags(5), source(5), 4_c_size_t, right, two)
    call shmemx_request_wait_local(two)
    do while (shmemx_request_test(two) == 0)
    end do
    several = SHMEMX_REQUEST_NULL
    several(1) = one
    one = SHMEMX_REQUEST_NULL
    call shmemx_request_merge(one, 1_c_size_t, several)
    call expect(several(1) == SHMEMX_REQUEST_NULL, 'shmemx_request_merge')
    call shmemx_request_wait(one)
    call expect(one == SHMEMX_REQUEST_NULL, 'shmemx_request_wait')
    call shmemx_request_free(two)
    call expect(two == SHMEMX_REQUEST_NULL, 'shmemx_request_free')
    call shmem_barrier_all()
    call expect(all(flags == left), 'puts under requests')
    call shmemx_get_nbe(source, flags, 8_c_size_t, right, several(2))
    call expect(shmemx_request_wait_any(3_c_size_t, several) == 1, 'shmemx_request_wait_any')
    call expect(all(source == me), 'a get under a request')
    call shmemx_get_nbe(source, flags, 8_c_size_t, right, several(3))
    call expect(shmemx_request_wait_some(3_c_size_t, several, indices) == 1 .and. indices(1) == 2, 'shmemx_request_wait_some')
    call expect(shmemx_request_test_any(3_c_size_t, several) == -1, 'shmemx_request_test_any') ! SIZE_MAX
  end subroutine

  subroutine plans()
    type(shmemx_plan_t) :: plan
    type(shmemx_request_t) :: req
    integer(c_int), target, save :: sums(2), parts(2)
    req = SHMEMX_REQUEST_NULL
    call shmemx_plan_begin(plan)
    ierr = shmemx_sum_reduce_nbe(SHMEM_TEAM_WORLD, sums, parts, 2_c_size_t, req)
    call shmemx_plan_end(plan)
    do i = 1, 3
      parts = [i, me]
      ierr = shmemx_request_start(plan, req)
      call expect(ierr == 0, 'shmemx_request_start')
      call shmemx_request_wait(req)
      call expect(all(sums == [i * n, n * (n - 1) / 2]), 'a plan')
    end do
    call shmemx_plan_free(plan)
    call expect(plan == SHMEMX_PLAN_NULL, 'shmemx_plan_free')
  end subroutine

  subroutine exchanges()
    integer(c_int), target, save :: from(8), to(8)
    integer(c_size_t) :: counts(n), offsets(n), ones(2), places(2)
    type(shmemx_request_t) :: req
    req = SHMEMX_REQUEST_NULL
    counts = 1
    offsets = [(i, i = 0, n - 1)]
    ones = 1
    places = [0, 1]
    from = [(10 * me + i, i = 0, 7)]
    call shmem_sync_all()
    ierr = shmemx_alltoallv(SHMEM_TEAM_WORLD, c_loc(to), counts, offsets, c_loc(from), counts, offsets, 4_c_size_t)
    call expect(ierr == 0 .and. all(to(1:n) == [(10 * i + me, i = 0, n - 1)]), 'shmemx_alltoallv')
    call shmem_sync_all()
    to = -1
    call shmem_sync_all()
    ierr = shmemx_alltoallv_nbe(SHMEM_TEAM_WORLD, c_loc(to), counts, offsets, c_loc(from), counts, offsets, 4_c_size_t, req)
    call shmemx_request_wait(req)
    call expect(ierr == 0 .and. all(to(1:n) == [(10 * i + me, i = 0, n - 1)]), 'shmemx_alltoallv_nbe')
    if (n < 3) return ! two neighbors
    do i = 1, 4
      call shmem_sync_all()
      to = -1
      call shmem_sync_all()
      select case (i)
      case (1)
        ierr = shmemx_neighbor_alltoall(SHMEM_TEAM_WORLD, [left, right], 2_c_size_t, c_loc(to), c_loc(from), 4_c_size_t)
      case (2)
        ierr = shmemx_neighbor_alltoall_nbe(SHMEM_TEAM_WORLD, [left, right], 2_c_size_t, c_loc(to), c_loc(from), 4_c_size_t, req)
      case (3)
        ierr = shmemx_neighbor_alltoallv(SHMEM_TEAM_WORLD, [left, right], 2_c_size_t, c_loc(to), ones, places, c_loc(from), &
                                         ones, places, 4_c_size_t)
      case (4)
        ierr = shmemx_neighbor_alltoallv_nbe(SHMEM_TEAM_WORLD, [left, right], 2_c_size_t, c_loc(to), ones, places, &
                                             c_loc(from), ones, places, 4_c_size_t, req)
      end select
      call shmemx_request_wait(req)
      call expect(ierr == 0 .and. all(to(1:2) == [10 * left + 1, 10 * right]), 'neighbors')
    end do
  end subroutine

  subroutine progress()
    type(shmemx_request_t) :: req
    character(kind=c_char), pointer :: word(:)
    req = SHMEMX_REQUEST_NULL
    call shmemx_progress()
    call expect(shmemx_progress_policy('auto' // c_null_char) == 0, 'shmemx_progress_policy')
    call c_f_pointer(shmemx_progress_network(), word, [4])
    call expect(all(word == ['n', 'o', 'n', 'e']), 'shmemx_progress_network')
    call expect(shmemx_team_sync_mt(SHMEM_TEAM_WORLD, 0, 1) == 0, 'shmemx_team_sync_mt')
    call expect(shmemx_team_barrier_mt(SHMEM_TEAM_WORLD, 0, 1) == 0, 'shmemx_team_barrier_mt')
    call expect(shmemx_team_sync_nbe(SHMEM_TEAM_WORLD, req) == 0, 'shmemx_team_sync_nbe')
    call shmemx_request_wait(req)
    call expect(shmemx_team_barrier_nbe(SHMEM_TEAM_WORLD, req) == 0, 'shmemx_team_barrier_nbe')
    call shmemx_request_wait(req)
    call expect(shmemx_request_allocate(req, SHMEMX_REQUEST_SHARED) == 0, 'shmemx_request_allocate')
    call expect(shmemx_team_sync_mt_nbe(SHMEM_TEAM_WORLD, 0, 1, req) == 0, 'shmemx_team_sync_mt_nbe')
    call expect(shmemx_team_barrier_mt_nbe(SHMEM_TEAM_WORLD, 0, 1, req) == 0, 'shmemx_team_barrier_mt_nbe')
    call shmemx_request_wait(req)
    call shmemx_request_free(req)
  end subroutine
end program
