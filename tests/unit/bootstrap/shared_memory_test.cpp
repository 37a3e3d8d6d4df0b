// What is said of PEs of one host that do not share its memory.
#include "bootstrap/shared_memory.h"

#include <gtest/gtest.h>
#include <cerrno>
#include <string>

namespace heddle::bootstrap {
namespace {

constexpr Refusal kNone = {Place::kNobody, 0, 0, 0, 0, 0};

Place place(uint64_t boot, int leader, const Refusal& refusal = kNone) {
    return {1, 1, 0, boot, leader, refusal};
}

std::string said(const std::vector<Place>& places) {
    char text[768] = "";
    return describe_split_hosts(places, text, sizeof text) ? text : "nothing";
}

TEST(SplitHosts, NothingWhereAllShareOrHostsDiffer) {
    EXPECT_EQ(said({place(7, 0)}), "nothing");
    EXPECT_EQ(said({place(7, 0), place(7, 0), place(8, 2), place(8, 2)}), "nothing");
    EXPECT_EQ(said({place(7, 0), place(8, 1), place(7, 0), place(8, 1)}), "nothing");
}

TEST(SplitHosts, NothingOfKernelsThatDoNotTell) {
    EXPECT_EQ(said({place(0, 0), place(0, 1)}), "nothing");
}

TEST(SplitHosts, TheFirstPairIsNamedWithItsReason) {
    const Refusal refusal = {0, 1234, 5, 0, ECONNREFUSED, EACCES};
    EXPECT_EQ(
        said({place(7, 0), place(8, 1), place(7, 2, refusal)}),
        "PE 0 and PE 2 are on one host, but do not share its memory, and talk over the network: they do not share "
        "a network namespace, and /proc/1234/fd/5 cannot be opened (Permission denied); right would be one "
        "network namespace for the PEs of a host (docker run --network=host, bwrap without --unshare-net), or "
        "all of them in one container");
    const std::string more =
        said({place(9, 0), place(7, 1), place(7, 2, {1, 2, 5, 0, ECONNREFUSED, ESTALE}), place(7, 2), place(7, 4)});
    EXPECT_NE(more.find("PE 1 and PE 2 are on one host"), std::string::npos) << more;
    EXPECT_NE(more.find("(3 PEs are apart from others of their host)"), std::string::npos) << more;
    EXPECT_NE(more.find("/proc/2/fd/5 is another file;"), std::string::npos) << more;
}

TEST(SplitHosts, SocketsThatAreRefused) {
    const std::string there = said({place(7, 0), place(7, 1, {0, 2, 5, 1, EPERM, ENOENT})});
    EXPECT_NE(there.find("PE 0 cannot open a socket (Operation not permitted)"), std::string::npos) << there;
    const std::string here = said({place(7, 0), place(7, 1, {0, 2, 5, 0, ETIMEDOUT, ENOENT})});
    EXPECT_NE(here.find("PE 0 cannot be reached by a socket (Connection timed out)"), std::string::npos) << here;
}

TEST(SplitHosts, HostsOfTheLauncherThatAreOne) {
    const std::string text = said({place(7, 0), place(7, 1)});
    EXPECT_NE(text.find("the launcher has started them as on two hosts"), std::string::npos) << text;
}

TEST(SplitHosts, ValuesThatNoPeWouldSendDoNoHarm) {
    const std::string text = said({place(7, 0), place(7, 1, {1 << 30, -1, -1, 7, 1 << 30, -5})});
    EXPECT_NE(text.find("PE 1073741824 and PE 1"), std::string::npos) << text;
}

}  // namespace
}  // namespace heddle::bootstrap
