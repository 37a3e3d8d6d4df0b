// Which part of the box each PE has, and which PEs need its atoms. A grid of PEs cuts the box into equal parts. A PE
// sees, as ghosts, all atoms within reach of its part: those of other PEs, however many parts away, and, as the box is
// periodic, images of any atom, its own included.
//
// The grid looks the same from every PE, so all PEs number their partners alike, by the distance in the grid. What a PE
// sends to its partner k arrives there as what comes from that PE's partner k, at one place of the same arrays.
#pragma once

#include <algorithm>
#include <vector>

#include "apps/common/range.hpp"
#include "apps/minimd/model.hpp"
#include "programs/common/grid.hpp"

namespace shmem_mt {

class MdLayout {
  public:
    // Atoms in the part of this PE appear in that of a partner, moved by so many edges of the box.
    struct Image {
        int partner = -1;  // -1: out of reach
        std::array<int, 3> edges{};
        Vector shift{};
    };

    // Their ghosts have a stretch of the positions of each PE, behind its own atoms.
    struct Partner {
        int to, from;  // PEs; the two are different where the grid is more than two PEs wide
        long begin, capacity;
    };

    static constexpr int kStays = -1, kLost = -2;

    MdLayout(long cells, int n_pes, int me)
        : grid_(grid_of(n_pes)), place_(place_of(grid_, me)), edge_(MdModel::edge_of(cells)) {
        for (size_t a = 0; a < 3; ++a) {
            width_[a] = edge_ / grid_[a];
            low_[a] = place_[a] * width_[a];
            far_[a] = static_cast<int>(std::ceil(kReach / width_[a]));
        }
        own_capacity_ = room(width_);
        find_images(n_pes);
    }

    double low(size_t axis) const { return low_[axis]; }
    double high(size_t axis) const { return low_[axis] + width_[axis]; }

    const std::vector<Partner>& partners() const { return partners_; }
    int remote() const { return remote_; }  // that many partners are other PEs; behind them comes this PE itself
    const Image& image(int index) const { return images_[static_cast<size_t>(index)]; }

    // Of the positions: own atoms, then ghosts of one partner after the other, then one place where no atom ever is.
    long own_capacity() const { return own_capacity_; }
    long remote_capacity() const { return remote_capacity_; }
    long nowhere() const { return nowhere_; }

    // f(cell) for each unit cell of the lattice that may have sites in the part of this PE, in the order of cells: along
    // x first. One more on either side makes up for rounding.
    template <class F>
    void for_cells(long cells, F&& f) const {
        Range around[3];
        for (size_t a = 0; a < 3; ++a) {
            const double length = edge_ / static_cast<double>(cells);
            around[a] = {std::max(0L, static_cast<long>(low(a) / length) - 1),
                         std::min(cells, static_cast<long>(high(a) / length) + 2)};
        }
        for (long z = around[2].begin; z < around[2].end; ++z) {
            for (long y = around[1].begin; y < around[1].end; ++y) {
                for (long x = around[0].begin; x < around[0].end; ++x) f(x + cells * (y + cells * z));
            }
        }
    }

    bool owns(const Vector& at) const { return displacement_to(at) == 0; }

    // Of what is so many edges of the box away.
    double shift(int edges) const { return edges * edge_; }

    // Into [0, edge), of what is not farther away than an edge.
    double wrapped(double x) const {
        x = x < 0 ? x + edge_ : x >= edge_ ? x - edge_ : x;
        return x == edge_ ? 0 : x;  // of a little below 0, rounded
    }

    // The partner that has the part where an atom of this PE is now, which may be kStays; kLost where that is none, or
    // no place in the box.
    int owner(const Vector& at) const {
        for (const double x : at) {
            if (!(x >= 0 && x < edge_))
                return kLost;
        }
        const size_t displacement = displacement_to(at);
        return displacement == 0 ? kStays : partner_at_[displacement];
    }

    // f(index of the image) for each image of an atom of this PE that some PE must see. False when there is none.
    template <class F>
    bool for_images(const Vector& at, F&& f) const {
        int from[3], to[3];
        for (size_t a = 0; a < 3; ++a) {
            from[a] = -parts_within(kReach - (at[a] - low_[a]), a);
            to[a] = parts_within(kReach - (high(a) - at[a]), a);
        }
        bool any = false;
        for (int z = from[2]; z <= to[2]; ++z) {
            for (int y = from[1]; y <= to[1]; ++y) {
                for (int x = from[0]; x <= to[0]; ++x) {
                    const int index = index_of({x, y, z});
                    if (image(index).partner < 0 || !within_reach(at, {x, y, z}))
                        continue;
                    any = true;
                    f(index);
                }
            }
        }
        return any;
    }

  private:
    // A little more than lists ask for, so that rounding leaves no atom out.
    static constexpr double kReach = kListCutoff + 1e-9;

    // Atoms in a box of that extent: an edge more than there is leaves room for planes of the lattice on its faces.
    static long room(const Vector& extent) {
        double volume = 1.1;
        for (const double length : extent) volume *= length + MdModel::lattice_constant();
        return static_cast<long>(std::ceil(volume * kDensity)) + 1;
    }

    int parts_within(double distance, size_t axis) const {
        return distance < 0 ? 0 : std::min(far_[axis], static_cast<int>(distance / width_[axis]) + 1);
    }

    int index_of(const Place& displacement) const {
        int index = 0;
        for (size_t a = 3; a-- > 0;) index = index * (2 * far_[a] + 1) + displacement[a] + far_[a];
        return index;
    }

    // Where in the grid something is that is so far from here, as the number of a PE would be if this PE were 0.
    size_t number_of(const Place& displacement) const {
        int number = 0;
        for (size_t a = 3; a-- > 0;) number = number * grid_[a] + (displacement[a] % grid_[a] + grid_[a]) % grid_[a];
        return static_cast<size_t>(number);
    }

    size_t displacement_to(const Vector& at) const {
        Place displacement{};
        for (size_t a = 0; a < 3; ++a)
            displacement[a] = std::min(grid_[a] - 1, static_cast<int>(at[a] * grid_[a] / edge_)) - place_[a];
        return number_of(displacement);
    }

    int pe_at(const Place& displacement, int sign) const {
        int pe = 0;
        for (size_t a = 3; a-- > 0;) {
            const int place = (place_[a] + sign * displacement[a]) % grid_[a];
            pe = pe * grid_[a] + (place + grid_[a]) % grid_[a];
        }
        return pe;
    }

    bool within_reach(const Vector& at, const Place& displacement) const {
        double squares = 0;
        for (size_t a = 0; a < 3; ++a) {
            const int d = displacement[a];
            const double gap = d > 0 ? high(a) + (d - 1) * width_[a] - at[a] : at[a] - low_[a] - (-d - 1) * width_[a];
            squares += d != 0 && gap > 0 ? gap * gap : 0;
        }
        return squares < kReach * kReach;
    }

    // How many atoms may have an image there; 0 where that is out of reach.
    long room_of_image(const Place& displacement) const {
        Vector extent = width_;
        double squares = 0;
        for (size_t a = 0; a < 3; ++a) {
            const double gap = std::max(0, std::abs(displacement[a]) - 1) * width_[a];
            squares += gap * gap;
            if (displacement[a] != 0)
                extent[a] = std::max(0.0, std::min(width_[a], kReach - gap));
        }
        return displacement == Place{} || squares >= kReach * kReach ? 0 : std::min(own_capacity_, room(extent));
    }

    void find_images(int n_pes) {
        std::vector<Partner> by_displacement(static_cast<size_t>(n_pes));
        images_.resize(static_cast<size_t>(2 * far_[0] + 1) * static_cast<size_t>(2 * far_[1] + 1) *
                       static_cast<size_t>(2 * far_[2] + 1));
        for_displacements([&](const Place& displacement) {
            const long images = room_of_image(displacement);
            if (images == 0)
                return;
            Partner& partner = by_displacement[number_of(displacement)];
            partner.to = pe_at(displacement, 1);
            partner.from = pe_at(displacement, -1);
            partner.capacity += images;
        });
        number_partners(by_displacement);
        for_displacements([&](const Place& displacement) {
            Image& image = images_[static_cast<size_t>(index_of(displacement))];
            if (room_of_image(displacement) == 0)
                return;
            image.partner = partner_at_[number_of(displacement)];
            for (size_t a = 0; a < 3; ++a) {
                const int place = place_[a] + displacement[a];
                image.edges[a] = -(place >= 0 ? place / grid_[a] : -((grid_[a] - 1 - place) / grid_[a]));
                image.shift[a] = shift(image.edges[a]);
            }
        });
    }

    template <class F>
    void for_displacements(F&& f) const {
        for (int z = -far_[2]; z <= far_[2]; ++z) {
            for (int y = -far_[1]; y <= far_[1]; ++y) {
                for (int x = -far_[0]; x <= far_[0]; ++x) f(Place{x, y, z});
            }
        }
    }

    // The largest first, so that threads that take them in turns have about as much to do; this PE itself last.
    void number_partners(const std::vector<Partner>& by_displacement) {
        std::vector<size_t> order;
        for (size_t i = 1; i < by_displacement.size(); ++i) {
            if (by_displacement[i].capacity > 0)
                order.push_back(i);
        }
        std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
            const long more = by_displacement[i].capacity - by_displacement[j].capacity;
            return more > 0 || (more == 0 && i < j);
        });
        remote_ = static_cast<int>(order.size());
        if (by_displacement[0].capacity > 0)
            order.push_back(0);
        partner_at_.assign(by_displacement.size(), kLost);
        nowhere_ = own_capacity_;
        for (const size_t displacement : order) {
            partner_at_[displacement] = static_cast<int>(partners_.size());
            partners_.push_back(by_displacement[displacement]);
            partners_.back().begin = nowhere_;
            nowhere_ += partners_.back().capacity;
            if (displacement != 0)
                remote_capacity_ = nowhere_ - own_capacity_;
        }
    }

    const Place grid_, place_;
    const double edge_;
    Vector width_{}, low_{};  // of this PE's part
    Place far_{};             // so many parts away may be within reach
    std::vector<Image> images_;
    std::vector<int> partner_at_;  // by displacement in the grid
    std::vector<Partner> partners_;
    int remote_ = 0;
    long own_capacity_ = 0, remote_capacity_ = 0, nowhere_ = 0;
};

}  // namespace shmem_mt
