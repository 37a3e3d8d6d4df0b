"""What a PE's memory grows by with the number of PEs of its job, before it has spoken to any."""


def private_bytes(here, pes):
    """Of the PE with the fewest, each being a node of its own: one that sleeps in a wait has told so, in some pages."""
    settings = {"HEDDLE_TEST_PES_PER_NODE": "1", "SHMEM_SYMMETRIC_SIZE": "4M"}
    result = here.run(str(pes), "./memory", settings=settings, limit=180)
    assert result.status == 0, result
    told = [int(line.split()[1]) for line in result.lines if line.startswith("private ")]
    assert len(told) == pes and min(told) > 0, result
    return min(told)


def test_a_remote_pe_takes_less_than_200_bytes_before_first_contact(here):
    few, many = 16, 256  # of fewer, each has more of the libraries' pages to itself; whole pages are counted
    assert private_bytes(here, many) - private_bytes(here, few) < 200 * (many - few)
