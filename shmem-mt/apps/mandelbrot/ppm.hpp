// The picture of the last run as a file (binary PPM), at most 800 pixels wide and high: the hue says which PE computed
// a row, the lightness which of its threads, and more steps are darker.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "apps/mandelbrot/image.hpp"

namespace shmem_mt {

class MandelbrotPicture {
  public:
    static constexpr long kMost = 800;

    // PE 0 makes the file at once, so that a name that cannot be is known before anything is measured. No name: no
    // file.
    MandelbrotPicture(const Job& job, const std::string& name) : threads_(job.threads()), n_pes_(job.n_pes()) {
        if (name.empty() || job.me() != 0)
            return;
        file_ = std::fopen(name.c_str(), "wb");
        if (file_ == nullptr)
            fail("--image " + name + ": cannot be written: " + std::strerror(errno));
    }

    ~MandelbrotPicture() {
        if (file_ != nullptr)
            std::fclose(file_);
    }

    MandelbrotPicture(const MandelbrotPicture&) = delete;
    MandelbrotPicture& operator=(const MandelbrotPicture&) = delete;

    // Behind a barrier of all PEs; the pieces must stay as they are until the next.
    void write(const MandelbrotImage& image) {
        if (file_ == nullptr)
            return;
        const long side = std::min(image.edge(), kMost);
        std::vector<char> piece(static_cast<size_t>(image.piece_bytes()));
        long there = -1;
        std::vector<unsigned char> line;
        bool good = std::fprintf(file_, "P6\n%ld %ld\n255\n", side, side) > 0;
        for (long y = 0; y < side; ++y) {
            const long row = y * image.edge() / side;
            const long wanted = image.piece_of(row);
            if (wanted != there)
                shmem_getmem(piece.data(), image.place(wanted), image.bytes(wanted), image.home(wanted));
            there = wanted;
            const uint16_t* const counts = image.counts(piece.data(), row);
            line.clear();
            for (long x = 0; x < side; ++x)
                add_colour(line, image.stamp(piece.data()), counts[x * image.edge() / side]);
            good = good && std::fwrite(line.data(), 1, line.size(), file_) == line.size();
        }
        if (!good || std::fflush(file_) != 0)
            fail(std::string("--image: cannot be written to: ") + std::strerror(errno));
    }

  private:
    void add_colour(std::vector<unsigned char>& line, const Stamp& stamp, uint16_t count) const {
        const double hue = static_cast<double>(stamp.pe) / n_pes_;
        const double thread = (stamp.thread_plus_1 - 0.5) / threads_;
        const double lightness = 0.45 + 0.4 * thread;
        const double steps = std::log(std::max<double>(count, 1)) / std::log(static_cast<double>(kMostSteps));
        const double light = 1 - 0.75 * std::min(1.0, steps);
        for (int part = 0; part < 3; ++part) {
            // A hue as three waves, each a third of a turn behind the other.
            const double wave = 0.5 + 0.5 * std::cos(2 * 3.14159265358979 * (hue - part / 3.0));
            const double strength = lightness + (1 - lightness) * (2 * wave - 1) * 0.9;
            line.push_back(static_cast<unsigned char>(255 * std::clamp(strength * light, 0.0, 1.0)));
        }
    }

    const int threads_, n_pes_;
    std::FILE* file_ = nullptr;
};

}  // namespace shmem_mt
