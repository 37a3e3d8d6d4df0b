// The devices that UCX sees on this host, for heddle-info: without a transport, and whatever HEDDLE_NET_DEVICES says.
#include <uct/api/uct.h>

#include <cstdio>
#include <string>
#include <vector>

#include "fabric/transport/ucx/ucx.h"

namespace {

const char* name_of(uct_device_type_t type) {
    switch (type) {
        case UCT_DEVICE_TYPE_NET:
            return "network";
        case UCT_DEVICE_TYPE_SHM:
            return "shared memory";
        case UCT_DEVICE_TYPE_ACC:
            return "accelerator";
        case UCT_DEVICE_TYPE_SELF:
            return "this process";
        default:
            return "other";
    }
}

// Adds a line for each transport of the component's memory domain.
void add_domain(uct_component_h component, const char* domain_name, std::string* text) {
    uct_md_config_t* config = nullptr;
    uct_md_h domain = nullptr;
    if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK)
        return;
    if (uct_md_open(component, domain_name, config, &domain) == UCS_OK) {
        uct_tl_resource_desc_t* resources = nullptr;
        unsigned count = 0;
        if (uct_md_query_tl_resources(domain, &resources, &count) == UCS_OK) {
            for (unsigned i = 0; i < count; ++i)
                text->append(resources[i].dev_name)
                    .append("\t")
                    .append(name_of(resources[i].dev_type))
                    .append("\t")
                    .append(resources[i].tl_name)
                    .append("\n");
            uct_release_tl_resource_list(resources);
        }
        uct_md_close(domain);
    }
    uct_config_release(config);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) size_t heddle_transport_devices(char* text, size_t bytes) {
    using namespace heddle::fabric::ucx;
    char error[256];
    uct_component_h* components = nullptr;
    unsigned count = 0;
    std::string found;
    if (!load(error, sizeof error) || uct_query_components(&components, &count) != UCS_OK)
        return 0;
    for (unsigned i = 0; i < count; ++i) {
        uct_component_attr_t attributes = {};
        attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        if (uct_component_query(components[i], &attributes) != UCS_OK)
            continue;
        std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
        attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attributes.md_resources = domains.data();
        if (uct_component_query(components[i], &attributes) != UCS_OK)
            continue;
        for (const uct_md_resource_desc_t& domain : domains) add_domain(components[i], domain.md_name, &found);
    }
    uct_release_component_list(components);
    return found.copy(text, bytes);
}
