// The session of an MPI program: the reference that collectives and streams of messages of OpenSHMEM are measured
// beside.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "programs/common/session.hpp"

namespace shmem_mt {

class MpiJob final : public Session {
  public:
    MpiJob(const char* benchmark, const Options& options, bool has_pairs) : Session(options) {
        has_pairs_ = has_pairs;
        const int wanted = options.threads == 1 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE;
        int provided = 0;
        MPI_Init_thread(nullptr, nullptr, wanted, &provided);
        thread_level_ok_ = provided >= wanted;
        start_threads(options.threads);
        MPI_Comm_rank(MPI_COMM_WORLD, &me_);
        MPI_Comm_size(MPI_COMM_WORLD, &n_pes_);
        reports_.resize(static_cast<size_t>(n_pes_));
        char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
        int length = 0, major = 0, minor = 0;
        MPI_Get_library_version(text, &length);
        MPI_Get_version(&major, &minor);
        const std::string library(text, static_cast<size_t>(length));
        const char* level = wanted == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_MULTIPLE";
        print_start(benchmark, library.substr(0, library.find('\n')), major, minor, level);
        prepare();
        if (lacks_partners(benchmark)) {
            finish();
            std::exit(0);
        }
    }

    // Ends the program normally.
    void finish() {
        end_threads();
        print_done();
        MPI_Finalize();
    }

    void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

    Agreed agree(const Report& mine) override {
        MPI_Gather(&mine, sizeof mine, MPI_BYTE, reports_.data(), sizeof mine, MPI_BYTE, 0, MPI_COMM_WORLD);
        Agreed result;
        if (me_ == 0)
            result = reduce(reports_.data());
        MPI_Bcast(&result, sizeof result, MPI_BYTE, 0, MPI_COMM_WORLD);
        return result;
    }

    void gather(const void* mine, size_t bytes, void* all) override {
        const int count = static_cast<int>(bytes);
        MPI_Gather(mine, count, MPI_BYTE, all, count, MPI_BYTE, 0, MPI_COMM_WORLD);
    }

    void scatter(const void* all, size_t bytes, void* mine) override {
        const int count = static_cast<int>(bytes);
        MPI_Scatter(all, count, MPI_BYTE, mine, count, MPI_BYTE, 0, MPI_COMM_WORLD);
    }

  protected:
    long ask_time(long number) override {
        long ns = 0;
        MPI_Send(&number, 1, MPI_LONG, 0, kTimeTag, MPI_COMM_WORLD);
        MPI_Recv(&ns, 1, MPI_LONG, 0, kTimeTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return ns;
    }

    void answer_time(int pe, long) override {
        long number = 0;
        MPI_Recv(&number, 1, MPI_LONG, pe, kTimeTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const long ns = time_ns();
        MPI_Send(&ns, 1, MPI_LONG, pe, kTimeTag, MPI_COMM_WORLD);
    }

  private:
    static constexpr int kTimeTag = 4711;
    std::vector<Report> reports_;
};

}  // namespace shmem_mt
