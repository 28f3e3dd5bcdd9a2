/* A stand-in for libamd_smi.so: what Joulie asks of AMD SMI, answered from a file of the test. Microwatts.
 *
 * The binding wants every symbol that it knows: those that are not here come, as "not supported", from a file that the
 * test writes from the binding's own list. Structures are laid out as in amdsmi.h of ROCm 7. */
#include "state.h"
#include <stdint.h>

enum { OK = 0, NOT_SUPPORTED = 2, NOT_FOUND = 31, NOT_INIT = 32, INVAL = 1, DRIVER_NOT_LOADED = 34 };

struct board { int index; };
typedef struct board *Device;
typedef struct { uint64_t cap, default_cap, dpm_cap, min_cap, max_cap, reserved[3]; } PowerCap;
typedef struct {
    uint64_t socket_w;
    uint32_t current_w, average_w;
    uint64_t gfx_mv, soc_mv, mem_mv;
    uint32_t limit, padding;
    uint64_t reserved[18];
} Power;
typedef struct {
    char market_name[256];
    uint32_t vendor_id;
    char vendor_name[256];
    uint32_t subvendor_id;
    uint64_t device_id;
    uint32_t rev_id;
    char serial[256];
    uint32_t oam_id, compute_units, padding;
    uint64_t graphics_version;
    uint32_t subsystem_id, reserved[21];
} __attribute__((packed)) Asic;

static struct board handles[64];
static long long session = -1; /* the load of the driver that this session belongs to */

static int begin(Device device, const char *call) {
    if (session < 0 || session != state_number("driver.load", 0)) return NOT_INIT;
    if (device && board_number(device->index, "lost", 0)) return NOT_FOUND;
    return state_status(device ? device->index : -1, call);
}

static Device hand_out(int index) {
    handles[index].index = index;
    return &handles[index];
}

int amdsmi_init(uint64_t flags) {
    (void)flags;
    int status = state_status(-1, "init");
    if (status == OK && !state_number("driver", 1)) status = DRIVER_NOT_LOADED;
    if (status != OK) return status;
    session = state_number("driver.load", 0);
    state_append("sessions", state_number("sessions", 0) + 1);
    return OK;
}

int amdsmi_shut_down(void) {
    session = -1;
    state_append("shutdowns", state_number("shutdowns", 0) + 1);
    return OK;
}

/* One socket holds all boards. */
int amdsmi_get_socket_handles(uint32_t *count, void **sockets) {
    *count = 1;
    if (sockets) sockets[0] = handles;
    return begin(NULL, "sockets");
}

int amdsmi_get_processor_handles(void *socket, uint32_t *count, Device *devices) {
    (void)socket;
    *count = (uint32_t)state_number("boards", 0);
    for (uint32_t index = 0; devices && index < *count; index++) devices[index] = hand_out((int)index);
    return begin(NULL, "handles");
}

int amdsmi_get_gpu_device_bdf(Device device, uint64_t *address) {
    char value[64];
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    state_text(board_key(device->index, "bdf"), value, sizeof value);
    sscanf(value, "%x:%x:%x.%x", &domain, &bus, &slot, &function);
    *address = (uint64_t)domain << 16 | bus << 8 | slot << 3 | function;
    return begin(device, "bdf");
}

int amdsmi_get_processor_handle_from_bdf(uint64_t address, Device *device) {
    int status = begin(NULL, "handle");
    for (int index = 0; status == OK && index < state_number("boards", 0); index++) {
        uint64_t other = 0;
        if (amdsmi_get_gpu_device_bdf(hand_out(index), &other) == OK && other == address) {
            *device = hand_out(index);
            return OK;
        }
    }
    return status == OK ? NOT_FOUND : status;
}

int amdsmi_get_gpu_asic_info(Device device, Asic *asic) {
    memset(asic, 0, sizeof *asic);
    state_text(board_key(device->index, "name"), asic->market_name, sizeof asic->market_name);
    state_text(board_key(device->index, "serial"), asic->serial, sizeof asic->serial);
    return begin(device, "name");
}

int amdsmi_get_power_cap_info(Device device, uint32_t sensor, PowerCap *cap) {
    int status = begin(device, "limit");
    memset(cap, 0, sizeof *cap);
    if (status != OK || sensor != 0) return status ? status : INVAL;
    cap->cap = (uint64_t)board_number(device->index, "limit", 0);
    cap->default_cap = (uint64_t)board_number(device->index, "default", 0);
    cap->min_cap = (uint64_t)board_number(device->index, "min", 0);
    cap->max_cap = (uint64_t)board_number(device->index, "max", 0);
    return OK;
}

int amdsmi_set_power_cap(Device device, uint32_t sensor, uint64_t cap) {
    int status = begin(device, "set");
    if (status != OK || sensor != 0) return status ? status : INVAL;
    if (cap < (uint64_t)board_number(device->index, "min", 0) || cap > (uint64_t)board_number(device->index, "max", 0))
        return INVAL;
    long long silently = board_number(device->index, "clamps_to", 0);
    /* The driver keeps whole watts. */
    state_append(board_key(device->index, "limit"), silently ? silently : (long long)(cap / 1000000 * 1000000));
    return OK;
}

int amdsmi_get_power_info(Device device, Power *power) {
    int status = begin(device, "power");
    memset(power, 0, sizeof *power);
    power->socket_w = (uint64_t)board_number(device->index, "socket_w", 0xFFFF);
    power->current_w = (uint32_t)board_number(device->index, "current_w", 0xFFFF);
    power->average_w = (uint32_t)board_number(device->index, "average_w", 0xFFFF);
    return status;
}
