// A mini-app whose PEs compute so unevenly that what is reported of it is known: PE p for 1,000 (p + 1) seconds. It books
// them as a phase of communication that took less than no time. Two threads and two runs a sample change nothing.
#include <memory>
#include <string>
#include <vector>

#include "apps/common/mini_app.hpp"

namespace shmem_mt {
namespace {

constexpr double kUnit = 1000;

class Uneven final : public MiniApp {
  public:
    Uneven(Job& job, const char* form, double each)
        : MiniApp(job, form, {{"exchange", true}, {"work", false}, {"span", true, true}}), each_(each) {}

    void describe(Json&) const override {}
    void explain(Json&) const override {}
    double work() const override { return 1; }
    const char* unit() const override { return "runs"; }

    void run(int thread) override {
        if (thread != 0)
            return;
        book(0, -each_ * (job_.me() + 1));
        book(1, 5 * kUnit);              // computing, as what is booked on no phase
        book(2, 7 * kUnit * job_.me());  // of several phases, for figures alone
    }

    void check(Checker& checker) override { checker.compare_word(1, 1); }

  private:
    const double each_;
};

void run_all(Job& job) {
    std::vector<std::unique_ptr<MiniApp>> forms;
    forms.push_back(std::make_unique<Uneven>(job, "uneven", kUnit));
    forms.push_back(std::make_unique<Uneven>(job, "idle", -1e-3));
    run_forms(job, "uneven", forms);
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    return run_program("uneven", parse_options(argc, argv, Options(), {"uneven"}), run_all);
}
