// SHMEM-MT mandelbrot: the Mandelbrot set by work stealing, after W. Lu, T. Curtis and B. Chapman, "Enabling
// low-overhead communication in multi-threaded OpenSHMEM applications using contexts" (PAW-ATM 2019): pieces of a few
// rows are dealt in blocks to the PEs; threads take them from a counter of their own PE's and, when that has none left,
// of the others in turns, and put what they have computed into a picture that lies over all PEs (image.hpp).
// The forms (form.hpp) differ in the contexts that they do it through. --size is the edge of the picture in
// pixels; the paper's is 3200.
//
// Phases of thread 0: `steal`, asking for pieces; `put`, puts and the waits for them.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/problem_size.hpp"
#include "apps/mandelbrot/form.hpp"
#include "apps/mandelbrot/ppm.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "mandelbrot";

std::vector<std::string> known_forms() {
    std::vector<std::string> names;
    for (const MandelbrotForm& form : kMandelbrotForms) names.push_back(form.name);
    return names;
}

void run_all(Job& job, long edge) {
    MandelbrotPicture picture(job, job.options().image);
    MandelbrotImage image(job, edge);
    const MandelbrotAnswer answer(image, job);
    const ContextTurns contexts(job);
    const MandelbrotCommon common{image, answer, contexts, row_counter()};
    std::vector<std::unique_ptr<MiniApp>> forms;
    for (const MandelbrotForm& form : kMandelbrotForms) {
        if (!job.options().wants_op(form.name))
            continue;
        const std::string reason =
            form.way == MandelbrotWay::kContextsInTurns ? contexts.why_none() : job.why_no_context(form.route);
        if (reason.empty())
            forms.push_back(std::make_unique<Mandelbrot>(job, form, common));
        else
            job.skip(kName, form.name, reason);
    }
    run_forms(job, kName, forms);
    if (!forms.empty())
        picture.write(image);
    job.barrier();  // the picture stays until PE 0 has it
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    const Options options = parse_options(argc, argv, Options(), known_forms());
    const long edge = size_of(options, {192, 1600, 3200, 12800});
    if (edge > kLargestEdge)
        usage_error(argv[0], "--size " + options.size + ": the edge of the picture is 1 to " +
                                 std::to_string(kLargestEdge) + " pixels");
    return run_program(kName, options, [&](Job& job) { run_all(job, whole_length(job, edge, 2, kLargestEdge)); });
}
