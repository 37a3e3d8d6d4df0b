"""The procedures of the Fortran module that are not C's: arrays in symmetric memory, allocated by their shape.

    shmem_alloc(array, shape)     a pointer of the common kinds, ranks 1 to 3; shape is an integer array, or for rank 1
                                  a number of elements
    shmem_dealloc(array)
"""

from __future__ import annotations

KINDS = {
    "int8": "integer(c_int8_t)", "int16": "integer(c_int16_t)", "int32": "integer(c_int32_t)",
    "int64": "integer(c_int64_t)", "float": "real(c_float)", "double": "real(c_double)",
    "complexf": "complex(c_float_complex)", "complexd": "complex(c_double_complex)", "bool": "logical(c_bool)",
}
RANKS = {1: ":", 2: ":, :", 3: ":, :, :"}

ALLOCATE = """
! Collective, as shmem_malloc; array is not associated when the heap has no room or an extent is negative, on every PE.
subroutine alloc_NAME_RANK(array, shape)
  KIND, pointer, intent(out) :: array(COLONS)
  integer, intent(in) :: shape(:)
  KIND :: element
  type(c_ptr) :: memory
  nullify(array)
  memory = memory_of(shape, RANK, storage_size(element) / 8)
  if (c_associated(memory)) call c_f_pointer(memory, array, shape)
end subroutine

subroutine dealloc_NAME_RANK(array)
  KIND, pointer, intent(inout) :: array(COLONS)
  if (associated(array)) call shmem_free(c_loc(array))
  nullify(array)
end subroutine
"""

ALLOCATE_COUNT = """
subroutine alloc_NAME_count(array, count)
  KIND, pointer, intent(out) :: array(:)
  integer, intent(in) :: count
  call shmem_alloc(array, [count])
end subroutine
"""

MEMORY_OF = """
! Memory for an array of this shape; an array without elements has some, too. A negative extent has none, as have
! more bytes than there can be: PEs call shmem_malloc in either case.
function memory_of(shape, rank, element_bytes) result(memory)
  integer, intent(in) :: shape(:), rank, element_bytes
  type(c_ptr) :: memory
  interface
    subroutine end_by_shape(extents, rank) bind(C, name="heddle_fortran_end_by_shape")
      import c_int
      integer(c_int), value :: extents, rank
    end subroutine
  end interface
  if (size(shape) /= rank) call end_by_shape(int(size(shape), c_int), int(rank, c_int))
  memory = shmem_malloc(bytes_of(shape, element_bytes))
end function

pure function bytes_of(shape, element_bytes) result(bytes)
  integer, intent(in) :: shape(:), element_bytes
  integer(c_size_t) :: bytes
  integer(c_size_t), parameter :: most = huge(bytes) ! half of the addresses: no heap has as many
  integer :: i
  bytes = merge(most, 1_c_size_t, any(shape < 0))
  if (any(shape <= 0)) return
  bytes = element_bytes
  do i = 1, size(shape)
    if (bytes > most / shape(i)) then ! the product would wrap around
      bytes = most
      return
    end if
    bytes = bytes * shape(i)
  end do
end function
"""


def each(text: str) -> list[str]:
    """text for each kind and rank."""
    lines = []
    for name, kind in KINDS.items():
        for rank, colons in RANKS.items():
            filled = text.replace("NAME", name).replace("KIND", kind).replace("RANK", str(rank))
            lines += filled.replace("COLONS", colons).splitlines()
    return lines


def interfaces() -> list[str]:
    lines = []
    for verb in ("alloc", "dealloc"):
        names = [f"{verb}_{name}_{rank}" for name in KINDS for rank in RANKS]
        names += [f"alloc_{name}_count" for name in KINDS] if verb == "alloc" else []
        lines += ["", f"interface shmem_{verb}", *[f"  procedure :: {name}" for name in names], "end interface",
                  *[f"private :: {name}" for name in names]]
    return [*lines, "private :: memory_of, bytes_of"]


def procedures() -> list[str]:
    counts = [line for name, kind in KINDS.items()
              for line in ALLOCATE_COUNT.replace("NAME", name).replace("KIND", kind).splitlines()]
    return [*each(ALLOCATE), *counts, *MEMORY_OF.splitlines()]
