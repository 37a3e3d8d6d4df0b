// DetectorServer: the detectors of PEs on other nodes, beside those of the PEs that share this node's memory. It
// carries out their requests (detector_messages.h), in order for each PE. Threads: one.
#pragma once

#include "checking/races/detector.h"
#include "checking/races/detector_messages.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::checking::races {

class DetectorServer {
  public:
    // As a Detector's.
    DetectorServer(char* memory, size_t positions, int n_pes);

    // Carries out a request of a PE. *answer: what is to be sent back; empty: nothing. False when the bytes are no
    // request: nothing, or a part of it, has been done.
    bool carry_out(int pe, std::string_view message, std::string* answer);

  private:
    struct Client {
        std::unique_ptr<Detector> detector;
        std::vector<Race> found;
    };

    Client& client(int pe);
    bool read(const AccessWords& words, Access* access) const;
    bool carry_out(Client& client, const Request& request, std::string_view more, Answer* answer);
    bool access(Detector& detector, RequestKind kind, const Request& request);
    bool access_at_once(Detector& detector, const Request& request, std::string_view more);

    char* memory_;
    const size_t positions_;
    const int n_pes_;
    std::vector<Client> clients_;  // by PE
};

}  // namespace heddle::checking::races
