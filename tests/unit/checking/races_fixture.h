// Several PEs' race detectors over one memory, driven step by step. PEs of other nodes reach it by messages.
#pragma once

#include "checking/races/detector.h"
#include "checking/races/detector_server.h"
#include "checking/races/remote_detector.h"
#include "checking/races/report.h"
#include "unit/checking/search_memory.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::checking::races {

constexpr size_t kFlag = 4096, kData = 8192;

enum class Where { kHere, kElsewhere, kBoth };

// Messages that a server carries out at once.
class DirectLink final : public DetectorLink {
  public:
    DirectLink(DetectorServer& server, int pe) : server_(server), pe_(pe) {}
    void send(std::string_view message) override { EXPECT_TRUE(server_.carry_out(pe_, message, &answer_)); }
    size_t receive(char* message, size_t bytes) override {
        EXPECT_LE(answer_.size(), bytes);
        return answer_.copy(message, bytes);
    }

  private:
    DetectorServer& server_;
    const int pe_;
    std::string answer_;
};

class Races : public testing::TestWithParam<Where> {
  protected:
    bool is_here(int pe) const { return GetParam() == Where::kHere || (GetParam() == Where::kBoth && pe % 2 == 0); }
    void start(int n_pes) {
        memory_ = std::make_unique<SearchMemory>(n_pes);
        begin(n_pes);
    }
    // A life of the PEs, from init to finalize.
    void begin(int n_pes) {
        pes_.clear();
        links_.clear();
        server_ = std::make_unique<DetectorServer>(memory_->get(), kPositions, n_pes);
        for (int pe = 0; pe < n_pes; ++pe) {
            links_.push_back(std::make_unique<DirectLink>(*server_, pe));
            if (is_here(pe))
                pes_.push_back(std::make_unique<Detector>(memory_->get(), kPositions, pe, n_pes, &Races::note, this));
            else
                pes_.push_back(std::make_unique<RemoteDetector>(*links_.back(), n_pes, &Races::note, this));
        }
    }
    std::vector<Race>& found() {
        for (auto& one : pes_) one->settle();
        return found_;
    }
    static void note(void* to, const Race& race) { static_cast<Races*>(to)->found_.push_back(race); }

    RaceDetector& pe(int number) { return *pes_[static_cast<size_t>(number)]; }

    void put(int from, int to, size_t position, size_t bytes = 8, Flow flow = Flow::kDefault) {
        pe(from).access({to, position, bytes, true, false, Completion::kOrdered, flow}, {"put", nullptr});
    }
    void get(int from, int of, size_t position, size_t bytes = 8) {
        pe(from).access({of, position, bytes, false, false, Completion::kAtReturn, Flow::kDefault}, {"get", nullptr});
    }
    void get_nbi(int from, int of, size_t position, size_t bytes = 8) {
        pe(from).access({of, position, bytes, false, false, Completion::kAtQuiet, Flow::kDefault},
                        {"get_nbi", nullptr});
    }
    void add(int from, int to, size_t position) {
        pe(from).update({to, position, 8, true, true, Completion::kOrdered, Flow::kDefault}, {"add", nullptr}, false);
    }
    void signal(int from, int to, size_t position) {
        pe(from).update({to, position, 8, true, true, Completion::kOrdered, Flow::kDefault}, {"signal", nullptr}, true);
    }
    void put_signal(int from, int to, size_t position, size_t bytes, size_t flag) {
        put(from, to, position, bytes, Flow::kSignal);
        signal(from, to, flag);
    }
    void wait(int who, size_t position) { pe(who).see(who, position, 8, Edge::kWait); }
    void sync() {
        const CollectiveKey key = {0, ++step_};
        for (auto& one : pes_) one->enter_collective(key, true);
        for (auto& one : pes_) one->leave_collective(key, true);
    }
    void barrier() {
        for (auto& one : pes_) one->quiet(Flow::kDefault);
        sync();
    }
    std::string cure() { return found().empty() ? "" : describe_cure(found().back()); }

    std::unique_ptr<SearchMemory> memory_;
    std::unique_ptr<DetectorServer> server_;
    std::vector<std::unique_ptr<DirectLink>> links_;
    std::vector<std::unique_ptr<RaceDetector>> pes_;
    std::vector<Race> found_;
    uint32_t step_ = 0;
};

}  // namespace heddle::checking::races
