#include "fabric/multirail/rail_devices.h"

#include "fabric/multirail/rail_scheduler.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <algorithm>
#include <cstdio>
#include <cstring>

namespace heddle::fabric {

namespace {

std::vector<std::string> split(const char* names) {
    std::vector<std::string> found;
    while (*names) {
        const size_t length = strcspn(names, ",");
        found.emplace_back(names, length);
        names += length + (names[length] == ',');
    }
    return found;
}

// The interfaces that are up and have an address, without the loopback interface.
std::vector<std::string> interfaces() {
    std::vector<std::string> found;
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0)
        return found;
    for (const ifaddrs* each = all; each; each = each->ifa_next) {
        const bool can = each->ifa_addr && (each->ifa_flags & IFF_UP) && !(each->ifa_flags & IFF_LOOPBACK) &&
                         (each->ifa_addr->sa_family == AF_INET || each->ifa_addr->sa_family == AF_INET6);
        if (can && std::find(found.begin(), found.end(), each->ifa_name) == found.end())
            found.emplace_back(each->ifa_name);
    }
    freeifaddrs(all);
    return found;
}

std::string join(const std::vector<std::string>& names, const char* between) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : between) + name;
    return text;
}

}  // namespace

bool deal_devices(const char* named, uint64_t rails, std::vector<std::string>* dealt, char* error, size_t error_bytes) {
    if (rails == 1) {
        *dealt = {named};
        return true;
    }
    if (rails == 0 || rails > kMaxRails) {
        snprintf(error, error_bytes, "HEDDLE_NET_RAILS=%llu: right would be 1 to %d",
                 static_cast<unsigned long long>(rails), kMaxRails);
        return false;
    }
    const std::vector<std::string> names = *named ? split(named) : interfaces();
    for (const std::string& name : names)
        if (name.empty() || name == "all" || name[0] == '^') {
            snprintf(error, error_bytes,
                     "HEDDLE_NET_DEVICES=%s with HEDDLE_NET_RAILS=%llu: right would be the names of interfaces, with "
                     "commas between them",
                     named, static_cast<unsigned long long>(rails));
            return false;
        }
    if (names.size() < rails) {
        snprintf(error, error_bytes,
                 "HEDDLE_NET_RAILS=%llu: there %s %zu interface%s for them (%s%s); right would be no more rails than "
                 "interfaces",
                 static_cast<unsigned long long>(rails), names.size() == 1 ? "is" : "are", names.size(),
                 names.size() == 1 ? "" : "s", *named ? "HEDDLE_NET_DEVICES=" : "", join(names, " ").c_str());
        return false;
    }
    std::vector<std::vector<std::string>> hands(rails);
    for (size_t i = 0; i < names.size(); ++i) hands[i % rails].push_back(names[i]);
    dealt->clear();
    for (const std::vector<std::string>& hand : hands) dealt->push_back(join(hand, ","));
    return true;
}

}  // namespace heddle::fabric
