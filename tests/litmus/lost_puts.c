/* Preloaded, it loses single puts: the litmus tests must notice. */
void shmem_long_p(long* dest, long value, int pe);
void shmem_long_p(long* dest, long value, int pe) {
    (void)dest, (void)value, (void)pe;
}
