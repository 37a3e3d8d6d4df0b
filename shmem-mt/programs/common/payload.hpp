// What a message carries in a timed pass, and what it costs its reader: the first and the last word say which message
// it is, and the reader loads a word of each cache line. Also: how much memory no cache holds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace shmem_mt {

constexpr long kLineBytes = 64;

// The number of a point's first message: no other point's message, which may still lie in a slot, has one of its numbers.
inline long first_number(long token) {
    return token << 32 | 1;
}

// Where the second word of a stamp begins; one of fewer than 16 bytes has part of it, of up to 8 bytes nothing.
inline long second_word(long bytes) {
    return bytes > 8 ? std::max(8L, bytes - 8) : bytes;
}

// Marks the message of `bytes` bytes as number `number`. A message of fewer than 8 bytes has part of it.
inline void stamp(char* message, long bytes, uint64_t number) {
    const long second = second_word(bytes);
    std::memcpy(message, &number, static_cast<size_t>(std::min(8L, bytes)));
    std::memcpy(message + second, &number, static_cast<size_t>(bytes - second));
}

inline bool has_stamp(const char* message, long bytes, uint64_t number) {
    const long second = second_word(bytes);
    return std::memcmp(message, &number, static_cast<size_t>(std::min(8L, bytes))) == 0 &&
           std::memcmp(message + second, &number, static_cast<size_t>(bytes - second)) == 0;
}

// Loads a word of each cache line of the message; the compiler may not leave a load out.
inline void read_lines(const char* message, long bytes) {
    for (long at = 0; at + 8 <= bytes; at += kLineBytes) {
        const long word = __atomic_load_n(reinterpret_cast<const long*>(message + at), __ATOMIC_RELAXED);
        asm volatile("" : : "r"(word));
    }
}

// Bytes of the last cache of the machine that runs the program; 32 MiB where the kernel does not say.
inline long last_cache_bytes() {
    long largest = 0;
    for (int index = 0; index < 8; ++index) {
        const std::string path = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size";
        long size = 0;
        char unit = 0;
        if (FILE* file = std::fopen(path.c_str(), "r")) {
            if (std::fscanf(file, "%ld%c", &size, &unit) == 2)
                largest = std::max(largest, size * (unit == 'M' ? 1L << 20 : unit == 'K' ? 1L << 10 : 1));
            std::fclose(file);
        }
    }
    return largest > 0 ? largest : 32L << 20;
}

// A window beyond that is left out: more than twice the last cache, in a power of two, of up to 512 MiB.
constexpr long kMostColdBytes = 2L << 30;

// Slots of that many bytes that together exceed twice the last cache. A power of two.
inline long cold_slots(long slot_bytes) {
    static const long enough = 2 * last_cache_bytes();
    long slots = 1;
    while (slots * slot_bytes <= enough) slots *= 2;
    return slots;
}

// Bytes that programs can get without swapping, of the machine and of this process's control group; a GiB where the
// kernel does not say.
inline long available_bytes() {
    long kib = 1L << 20, limit = 0;
    char line[128];
    if (FILE* file = std::fopen("/proc/meminfo", "r")) {
        while (std::fgets(line, sizeof line, file) != nullptr && std::sscanf(line, "MemAvailable: %ld", &kib) != 1) {
        }
        std::fclose(file);
    }
    if (FILE* file = std::fopen("/sys/fs/cgroup/memory.max", "r")) {
        if (std::fscanf(file, "%ld", &limit) != 1)
            limit = 0;
        std::fclose(file);
    }
    return limit > 0 ? std::min(limit, kib << 10) : kib << 10;
}

}  // namespace shmem_mt
