/* A shared library with static data, which is not symmetric. */
static long data[512] = {1, 2, 3};

void* library_data(void);
void* library_data(void) {
    return data;
}
