// The layout of the node's memory, and one mapping of it.
#include "memory/node_memory.h"
#include "memory/symmetric.h"
#include "os/memfd.h"

#include <gtest/gtest.h>
#include <heddle/abi.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bit>
#include <string>
#include <thread>

namespace heddle::memory {
namespace {

constexpr size_t kPage = 4096, kHuge = 2u << 20;

void check_layout(const Layout& layout, size_t first_free, size_t shared, size_t heap, size_t data, size_t page) {
    EXPECT_GE(layout.shared_offset, first_free);
    EXPECT_EQ(layout.shared_offset % page, 0u);
    EXPECT_GE(layout.shared_bytes, shared);
    EXPECT_GE(layout.slots_offset, layout.shared_offset + layout.shared_bytes);
    EXPECT_EQ(layout.slots_offset % kHuge, 0u);
    EXPECT_GE(layout.heap_bytes, heap);
    EXPECT_EQ(layout.heap_bytes % page, 0u);
    EXPECT_GE(layout.data_offset, layout.heap_bytes + HEDDLE_GAP_BYTES) << "no gap behind the heap";
    EXPECT_EQ(layout.data_offset % page, 0u);
    EXPECT_GE(layout.data_bytes, data);
    EXPECT_GE(layout.stride, layout.data_offset + layout.data_bytes + HEDDLE_GAP_BYTES) << "no gap behind the data";
    EXPECT_EQ(layout.stride % kHuge, 0u);
    EXPECT_EQ(layout.total_bytes, layout.slots_offset + layout.stride * static_cast<size_t>(layout.n_slots));
}

TEST(Plan, LeavesGapsAndOneStride) {
    for (int n_pes : {1, 2, 7, 4096})
        for (size_t heap : {size_t{0}, size_t{1}, kPage, kHuge - kPage, kHuge, size_t{1} << 30, (size_t{1} << 30) + 1})
            for (size_t data : {size_t{0}, size_t{1}, kPage, 3 * kHuge})
                for (size_t shared : {size_t{1}, kHuge - kPage, kHuge + 1})
                    for (size_t page :
                         {kPage, 4 * kPage, 16 * kPage})  // 16 and 64 KiB are those of some aarch64 kernels
                        check_layout(plan(n_pes, 4097, shared, heap, data, page), 4097, shared, heap, data, page);
}

TEST(Plan, SaysZeroWhenItDoesNotFit) {
    EXPECT_EQ(plan(1, kPage, kPage, size_t{1} << 46, 0).total_bytes, 0u);
    EXPECT_EQ(plan(4096, kPage, kPage, size_t{1} << 34, 0).total_bytes, 0u);
    EXPECT_EQ(plan(1, kPage, kPage, size_t{1} << 56, 0).total_bytes, 0u) << "the largest size that a setting can have";
    EXPECT_EQ(plan(4096, kPage, kPage, size_t{1} << 56, size_t{1} << 40).total_bytes, 0u);
    EXPECT_NE(plan(1, kPage, kPage, size_t{1} << 45, 0).total_bytes, 0u);
    EXPECT_NE(plan(4096, kPage, kPage, size_t{1} << 33, 0).total_bytes, 0u);
}

TEST(MapNode, RefusesWhatDoesNotFit) {
    std::thread([] {
        const int fd = os::create_memory("heddle-unit", os::page_bytes());
        errno = 0;
        EXPECT_FALSE(map_node(fd, plan(1, os::page_bytes(), os::page_bytes(), size_t{1} << 56, 0), 0));
        EXPECT_EQ(errno, ENOMEM);
        close(fd);
    }).join();
}

TEST(MapNode, SlotsAreApartAlignedAndDiscardable) {
    std::thread([] {
        const int fd = os::create_memory("heddle-unit", os::page_bytes());
        const Layout layout = plan(3, os::page_bytes(), 100, 10 * os::page_bytes(), 2 * os::page_bytes());
        ASSERT_TRUE(map_node(fd, layout, 1));
        struct stat status;
        ASSERT_EQ(fstat(fd, &status), 0);
        EXPECT_EQ(static_cast<size_t>(status.st_size), layout.total_bytes);
        for (int pe = 0; pe < 3; ++pe) {
            EXPECT_EQ(reinterpret_cast<size_t>(node_memory.heap(pe)) % kHuge, 0u);
            EXPECT_EQ(node_memory.data(pe), node_memory.heap(pe) + layout.data_offset);
            EXPECT_EQ(node_memory.data_file_offset(pe), static_cast<size_t>(node_memory.data(pe) - node_memory.base));
            node_memory.heap(pe)[5] = static_cast<char>(pe + 1);
            node_memory.heap(pe)[layout.heap_bytes + HEDDLE_GAP_BYTES - 1] = 1;  // the gap is mapped
        }
        discard_heap(1, false);
        EXPECT_EQ(node_memory.heap(1)[5], 2) << "nothing was handed out";
        discard_heap(1, true);
        EXPECT_EQ(node_memory.heap(0)[5], 1);
        EXPECT_EQ(node_memory.heap(1)[5], 0) << "discarded pages read as zero";
        EXPECT_EQ(node_memory.heap(2)[5], 3);
        prepare_heap(0, true, true);
        EXPECT_EQ(node_memory.heap(0)[5], 1);
    }).join();
}

// Whatever lies where the kernel would put it: a slot's heap begins at a multiple of its size in the PE whose it is.
TEST(MapNode, OwnHeapIsAlignedToItsSize) {
    for (const size_t heap :
         {size_t{1} << 21, size_t{1} << 24, size_t{3} << 28, size_t{1} << 30, (size_t{1} << 30) + 1}) {
        for (int slot = 0; slot < 5; ++slot) {
            std::thread([heap, slot] {
                const int fd = os::create_memory("heddle-unit", kPage);  // stays open: map_node knows it by its number
                const Layout layout = plan(5, kPage, 12345, heap, 3 * kPage);
                ASSERT_TRUE(map_node(fd, layout, slot));
                EXPECT_EQ(reinterpret_cast<size_t>(node_memory.heap(slot)) % std::bit_ceil(heap), 0u);
                node_memory.heap(slot)[0] = 1;
                node_memory.data(4)[0] = 1;
            }).join();
        }
    }
}

TEST(Symmetric, TellsHeapDataAndNeither) {
    std::thread([] {
        static char heap[256], data[256], other_heap[256], other_data[256];
        heddle_peer peers[2] = {{heap, 256, data, 256}, {other_heap, 256, other_data, 256}};
        Symmetric memory;
        memory.heap = {reinterpret_cast<uintptr_t>(heap), sizeof heap};
        memory.data = {reinterpret_cast<uintptr_t>(data), sizeof data};
        memory.peers = peers;
        memory.n_pes = 2;
        symmetric = &memory;
        EXPECT_EQ(address_on(heap + 7, 1), other_heap + 7);
        EXPECT_EQ(address_on(data + 255, 1), other_data + 255);
        EXPECT_EQ(address_on(&memory, 1), nullptr);
        EXPECT_EQ(address_on(nullptr, 1), nullptr);
        EXPECT_FALSE(memory.heap.holds(heap + 256));
        EXPECT_EQ(memory.heap.bytes_from(heap + 250), 6u);
        char text[512];
        describe_not_symmetric(&memory, text, sizeof text);
        EXPECT_EQ(std::string(text).rfind("is not symmetric: heap is [0x", 0), 0u) << text;
        char small[10];
        describe_not_symmetric(&memory, small, sizeof small);
        EXPECT_EQ(std::string(small), "is not sy");
        describe_not_symmetric(reinterpret_cast<const void*>(&munmap), text, sizeof text);
        EXPECT_NE(std::string(text).find("; it is static data of lib"), std::string::npos) << text;
        symmetric = nullptr;
    }).join();
}

}  // namespace
}  // namespace heddle::memory
