"""What the study of order does, as explanations.Explanation has it: words, operations, columns and steps."""

ORDERING = (
    "What order costs. Each thread of the lower half streams to its partner in the upper half; so many messages "
    "may be outstanding. The rules differ in the order that messages keep, and so in what the network may do. The "
    "validating pass looks whether a flag can overtake data.",
    {
        "relaxed": "put_nbi on a context without order, quiet behind a window",
        "ordered": "the same on a context that keeps program order",
        "reorder-buffer": "the same, order kept by a buffer at the target",
        "fence": "put_nbi and fence each, quiet behind a window",
        "quiet": "put and quiet each",
        "two-sided": "MPI_Isend to MPI_Irecv of the same tag",
        "two-sided-any": "the same, received with MPI_ANY_SOURCE and MPI_ANY_TAG",
        "mpi-put": "MPI_Put, MPI_Win_flush behind a window",
        "mpi-put-flush": "MPI_Put, MPI_Win_flush behind each",
    },
    ("PE 0", "PE 1"),
    (
        (0, "clock starts"),
        (0, 1, "put_nbi 1"),
        (0, 1, "put_nbi 2, fenced or not"),
        (0, 1, "put_nbi ... `outstanding`"),
        (0, "quiet; the next window"),
        (1, 0, "the last data is here"),
        (0, "clock stops: messages / time"),
    ),
)
