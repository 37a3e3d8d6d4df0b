"""What the benchmark patterns does, as explanations.Explanation has it: words, operations, columns and steps."""

PATTERNS = (
    "The same cores are divided into PEs and threads in all ways, each in a start of its own, and every thread is "
    "bound to a core. The figure is what the whole job gets. Of each pattern and size all synchronizations (sync) "
    "and contexts are measured in turns. What is complete at its origin alone is followed by shmem_sync_all where "
    "the others must know (halo, alltoall); fence_flag and put_signal tell the target itself. One PE talks to "
    "itself.",
    {
        "latency": "a round trip of each thread with its partner, all at once",
        "stream": "windows of messages from the lower half of the PEs, or of one PE's threads, to the upper half",
        "bidirectional": "windows of messages between the halves, both ways",
        "incast": "windows of messages from all other PEs to PE 0",
        "fan-out": "windows of messages from PE 0 to all other PEs",
        "halo2d": "four faces of each PE in a plane of PEs that closes upon itself; threads share faces",
        "halo3d": "six faces of each PE in a grid of PEs that closes upon itself; threads share faces",
        "alltoall": "a block from each PE to each; threads share blocks",
        "random": "windows of puts, each to a PE that is drawn",
        "collective": "the sum of a vector of each thread of each PE, to all; doubles",
    },
    ("PE 0, thread 0", "PE 0, thread 1", "PE 1, thread 0"),
    (
        (0, "clock starts"),
        (0, 2, "its faces, blocks, messages"),
        (1, 2, "faces, blocks, messages"),
        (0, "completes: quiet, request ..."),
        "exchanges: shmem_sync_all by one thread of each PE",
        (2, "reads what has come"),
        (2, 0, "its own, meanwhile"),
        (0, "... as the sample asks"),
        "clock stops when all PEs have seen what came last",
    ),
)
