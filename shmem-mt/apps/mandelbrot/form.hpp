// One form of the Mandelbrot mini-app. All forms compute a piece, put it to its home without waiting, and take the next
// piece. The forms differ in when a thread waits for puts, and for whose puts.
//   default             one buffer a thread; shmem_quiet before the buffer is used again waits for all threads' puts
//   private             one buffer and a context of the thread's own, whose quiet waits for the thread's own puts
//   default-pipelined   two buffers in turns: a piece travels while the next one is computed; the shmem_quiet behind
//                       that also waits for what the other threads have just put
//   pipelined           four buffers in turns, each with a context of the thread's own. The put of a piece and the
//                       fetch-add for the piece to be computed in its buffer are posted together; their quiet comes
//                       three pieces later
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "apps/common/mini_app.hpp"
#include "apps/mandelbrot/contexts.hpp"
#include "apps/mandelbrot/kernel.hpp"
#include "apps/mandelbrot/verification.hpp"
#include "apps/mandelbrot/work_stealing.hpp"

namespace shmem_mt {

enum class MandelbrotWay { kOneBuffer, kTwoBuffers, kContextsInTurns };

struct MandelbrotForm {
    const char* name;
    MandelbrotWay way;
    Route route;
};

constexpr MandelbrotForm kMandelbrotForms[] = {
    {"default", MandelbrotWay::kOneBuffer, Route::kDefaultContext},
    {"private", MandelbrotWay::kOneBuffer, Route::kPrivateContext},
    {"default-pipelined", MandelbrotWay::kTwoBuffers, Route::kDefaultContext},
    {"pipelined", MandelbrotWay::kContextsInTurns, Route::kPrivateContext},
};

// What all forms share.
struct MandelbrotCommon {
    MandelbrotImage& image;
    const MandelbrotAnswer& answer;
    const ContextTurns& contexts;
    const RowCounter count_row;
};

class Mandelbrot final : public MiniApp {
  public:
    Mandelbrot(Job& job, const MandelbrotForm& form, const MandelbrotCommon& common)
        : MiniApp(job, form.name, {{"steal", true}, {"put", true}}),
          form_(form),
          common_(common),
          image_(common.image),
          workers_(static_cast<size_t>(job.threads())) {
        for (Worker& worker : workers_) {
            for (std::vector<char>& buffer : worker.buffers) buffer.resize(static_cast<size_t>(image_.piece_bytes()));
        }
    }

    void describe(Json& params) const override { params.integer("edge", image_.edge()); }

    void explain(Json& verdict) const override {
        verdict.text("hash", hexadecimal(hash_));
        verdict.text("known_hash", common_.answer.hash() ? hexadecimal(*common_.answer.hash()) : "none");
        verdict.integer("pieces_computed", pieces_computed_).integer("pieces_stolen", pieces_stolen_);
    }

    double work() const override { return static_cast<double>(image_.edge()) * static_cast<double>(image_.edge()); }
    const char* unit() const override { return "pixels"; }

    void prepare() override {
        image_.clear();
        for (Worker& worker : workers_) worker.computed = worker.stolen = 0;
    }

    void run(int thread) override {
        Worker& worker = workers_[static_cast<size_t>(thread)];
        if (form_.way == MandelbrotWay::kContextsInTurns)
            return common_.contexts.with_links(thread,
                                               [&](const auto& links) { turns_of_contexts(thread, worker, links); });
        job_.with_link(form_.route, thread, [&](const auto& link) {
            if (form_.way == MandelbrotWay::kOneBuffer)
                one_buffer(thread, worker, link);
            else
                two_buffers(thread, worker, link);
        });
    }

    // Every piece has a stamp, and all PEs together have computed as many as there are: so each was computed once.
    // Collective.
    void check(Checker& checker) override {
        Report mine;
        for (const Worker& worker : workers_) mine.checked_bytes += worker.computed;
        for (const Worker& worker : workers_) mine.expected_bytes += worker.stolen;
        const Agreed pieces = job_.agree(mine);
        pieces_computed_ = pieces.checked_bytes;
        pieces_stolen_ = pieces.expected_bytes;
        Report part;
        part.checked_bytes = static_cast<long>(common_.answer.check(checker));
        hash_ = static_cast<uint64_t>(job_.agree(part).checked_bytes) & kHashMask;
        checker.compare_word(pieces_computed_, image_.pieces());
        if (common_.answer.hash() != nullptr)
            checker.compare(&hash_, common_.answer.hash(), sizeof hash_);
    }

  private:
    enum : size_t { kSteal, kPut };

    struct alignas(64) Worker {
        std::vector<char> buffers[ContextTurns::kTurns];
        long computed = 0, stolen = 0;
    };

    template <class Link>
    void one_buffer(int thread, Worker& worker, const Link& link) {
        PieceTaker taker(image_, job_.me(), job_.n_pes());
        for (;;) {
            const long piece = spend(thread, kSteal, [&] { return taker.take(link); });
            spend(thread, kPut, [&] { link.quiet(); });  // the buffer is free again, or the last piece has arrived
            if (piece < 0)
                return;
            compute(thread, worker, 0, piece);
            spend(thread, kPut, [&] { put(link, worker, 0, piece); });
        }
    }

    template <class Link>
    void two_buffers(int thread, Worker& worker, const Link& link) {
        PieceTaker taker(image_, job_.me(), job_.n_pes());
        for (size_t turn = 0;; turn ^= 1) {
            const long piece = spend(thread, kSteal, [&] { return taker.take(link); });
            if (piece >= 0)
                compute(thread, worker, turn, piece);
            spend(thread, kPut, [&] { link.quiet(); });  // the other buffer is free for the next turn
            if (piece < 0)
                return;
            spend(thread, kPut, [&] { put(link, worker, turn, piece); });
        }
    }

    template <class Links>
    void turns_of_contexts(int thread, Worker& worker, const Links& links) {
        PieceTaker taker(image_, job_.me(), job_.n_pes());
        PieceTaker::Ticket tickets[ContextTurns::kTurns];
        bool going[ContextTurns::kTurns];  // a ticket may bring a piece though all that is left is taken
        std::fill(std::begin(going), std::end(going), true);
        for (size_t turn = 0, idle = 0; idle < links.size(); turn = (turn + 1) % links.size()) {
            idle = going[turn] ? 0 : idle + 1;
            if (!going[turn])
                continue;
            const auto& link = links[turn];
            spend(thread, kPut, [&] { link.quiet(); });  // the buffer is free, and the ticket is there
            const long piece = spend(thread, kSteal, [&] { return taker.take(link, tickets[turn]); });
            going[turn] = piece >= 0;
            if (!going[turn])
                continue;
            compute(thread, worker, turn, piece);
            spend(thread, kPut, [&] { put(link, worker, turn, piece); });
            spend(thread, kSteal, [&] { taker.ask(link, tickets[turn]); });
        }
    }

    void compute(int thread, Worker& worker, size_t turn, long piece) {
        const Fault fault = job_.options().fault;
        char* const buffer = worker.buffers[turn].data();
        MandelbrotImage::set_stamp(buffer, {job_.me(), thread + 1});
        const bool stale = fault == Fault::kStaleResult &&
                           worker.computed >= static_cast<long>(std::size(worker.buffers));  // each has had one
        const bool skipped = fault == Fault::kSkippedComputation || stale;
        const Range rows = skipped ? Range{0, 0} : image_.rows(piece);
        for (long row = rows.begin; row < rows.end; ++row)
            common_.count_row(image_.plane, row, image_.counts(buffer, row));
        ++worker.computed;
        const Range own = image_.block(job_.me());
        worker.stolen += piece < own.begin || piece >= own.end;
    }

    template <class Link>
    void put(const Link& link, Worker& worker, size_t turn, long piece) {
        const Fault fault = job_.options().fault;
        if (fault == Fault::kSkippedOperation)
            return;
        const size_t bytes = image_.bytes(piece) - (fault == Fault::kLastElementMissing ? sizeof(uint16_t) : 0);
        link.put_nbi(image_.place(piece), worker.buffers[turn].data(), bytes, job_.real_pe(image_.home(piece)));
    }

    static std::string hexadecimal(uint64_t hash) {
        char text[24];
        std::snprintf(text, sizeof text, "%0*llx", kHashBits / 4, static_cast<unsigned long long>(hash));
        return text;
    }

    const MandelbrotForm form_;
    const MandelbrotCommon& common_;
    MandelbrotImage& image_;
    std::vector<Worker> workers_;
    uint64_t hash_ = 0;
    long pieces_computed_ = 0, pieces_stolen_ = 0;  // of the last run, over all PEs
};

}  // namespace shmem_mt
