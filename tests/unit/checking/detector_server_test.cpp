// Requests that a peer sends to a detector's server: what is none is refused.
#include "checking/races/detector_server.h"
#include "unit/checking/search_memory.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace heddle::checking::races {
namespace {

// What a peer sends is checked: nothing is read or written beyond the memory, and no address of the peer is followed.
class Server : public testing::Test {
  protected:
    Server() : memory_(2), server_(memory_.get(), kPositions, 2) {}
    bool carry_out(const Request& request, std::string_view more = {}, int pe = 1) {
        std::string message(reinterpret_cast<const char*>(&request), sizeof request);
        message += more;
        return server_.carry_out(pe, message, &answer_);
    }
    static Request request_of(RequestKind kind) {
        Request request;
        request.kind = static_cast<uint32_t>(kind);
        return request;
    }

    SearchMemory memory_;
    DetectorServer server_;
    std::string answer_;
};

TEST_F(Server, RefusesWhatIsNoRequest) {
    EXPECT_FALSE(server_.carry_out(1, "", &answer_));
    EXPECT_FALSE(server_.carry_out(1, std::string(sizeof(Request) - 1, '\0'), &answer_));
    EXPECT_FALSE(server_.carry_out(1, std::string(kMostBytes + 1, '\0'), &answer_));
    EXPECT_FALSE(carry_out(request_of(RequestKind::kSettle), "more"));
    EXPECT_FALSE(carry_out(request_of(RequestKind::kName)));
    EXPECT_FALSE(carry_out(request_of(RequestKind::kIsNew), std::string(sizeof(base::CallText), 'a')));
    EXPECT_FALSE(carry_out(request_of(RequestKind{kRequestKinds})));
    EXPECT_FALSE(carry_out(request_of(RequestKind::kSettle), {}, 2));
    EXPECT_FALSE(carry_out(request_of(RequestKind::kSettle), {}, -1));
    EXPECT_TRUE(carry_out(request_of(RequestKind::kSettle)));
}

TEST_F(Server, RefusesAccessesBeyondTheMemory) {
    for (const RequestKind kind :
         {RequestKind::kAccess, RequestKind::kUpdate, RequestKind::kAccessInCollective, RequestKind::kSee}) {
        Request request = request_of(kind);
        request.access = {.position = kPositions - 8, .bytes = 8, .owner = 1};
        EXPECT_TRUE(carry_out(request));
        for (const AccessWords& words :
             {AccessWords{.position = kPositions - 8, .bytes = 16},
              AccessWords{.position = UINT64_MAX - 8, .bytes = 16}, AccessWords{.bytes = UINT64_MAX},
              AccessWords{.bytes = 8, .owner = 2}, AccessWords{.bytes = 8, .owner = -1},
              AccessWords{.bytes = 8, .completion = 3}, AccessWords{.bytes = 8, .flow = kFlows}}) {
            request.access = words;
            EXPECT_FALSE(carry_out(request));
        }
    }
}

TEST_F(Server, RefusesAWrongNumberOfAccesses) {
    Request request = request_of(RequestKind::kAccessAtOnce);
    request.number = UINT32_MAX;
    EXPECT_FALSE(carry_out(request, std::string(sizeof(AccessRequest), '\0')));
    request.number = 1;
    EXPECT_TRUE(carry_out(request, std::string(sizeof(AccessRequest), '\0')));
}

TEST_F(Server, FollowsNoAddressOfAPeer) {
    Request request = request_of(RequestKind::kAccess);
    request.access.bytes = 8;
    request.call = {8, 16};  // never named
    EXPECT_TRUE(carry_out(request));
    request.kind = static_cast<uint32_t>(RequestKind::kText);
    request.number = UINT32_MAX;
    request.answers = 1;
    EXPECT_TRUE(carry_out(request));
    request.kind = static_cast<uint32_t>(RequestKind::kName);
    EXPECT_TRUE(carry_out(request, std::string(sizeof(base::CallText), 'a')));  // no zero at its end
}

}  // namespace
}  // namespace heddle::checking::races
