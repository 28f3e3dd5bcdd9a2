/* A stand-in for libnvidia-ml.so.1: what Joulie asks of NVML, answered from a file of the test. Milliwatts. */
#include "state.h"

enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };

struct board { int index; int is_slice; };
typedef struct board *Device;

static struct board handles[64];
static long long session = -1; /* the load of the driver that this session belongs to */

static int begin(Device device, const char *call) {
    if (session < 0 || session != state_number("driver.load", 0)) return UNINITIALIZED;
    if (device && board_number(device->index, "lost", 0)) return GPU_IS_LOST;
    return state_status(device ? device->index : -1, call);
}

static int hand_out(int index, Device *device) {
    handles[index].index = index;
    handles[index].is_slice = (int)board_number(index, "slice_of", -1) >= 0;
    *device = &handles[index];
    return OK;
}

static int text(Device device, const char *call, char *value, unsigned size) {
    int status = begin(device, call);
    if (status == OK) state_text(board_key(device->index, call), value, size);
    return status;
}

static int number(Device device, const char *call, unsigned *value) {
    int status = begin(device, call);
    if (status == OK) *value = (unsigned)board_number(device->index, call, 0);
    return status;
}

static int board_of(const char *uuid) {
    char value[256];
    for (int board = 0; board < state_number("boards", 0); board++) {
        state_text(board_key(board, "uuid"), value, sizeof value);
        if (strcmp(value, uuid) == 0) return board;
    }
    return -1;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    int status = state_status(-1, "init");
    if (status == OK && !state_number("driver", 1)) status = DRIVER_NOT_LOADED;
    if (status != OK) return status;
    session = state_number("driver.load", 0);
    state_append("sessions", state_number("sessions", 0) + 1);
    return OK;
}

int nvmlShutdown(void) {
    if (session < 0) return UNINITIALIZED;
    session = -1;
    state_append("shutdowns", state_number("shutdowns", 0) + 1);
    return OK;
}

const char *nvmlErrorString(int status) { return status ? "what the stand-in was told to say" : "Success"; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    int status = begin(NULL, "count");
    if (status == OK) *count = (unsigned)state_number("boards", 0);
    return status;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    int status = begin(NULL, "handle");
    if (status != OK) return status;
    if ((long long)index >= state_number("boards", 0)) return INVALID_ARGUMENT;
    if (board_number((int)index, "lost", 0)) return GPU_IS_LOST;
    return hand_out((int)index, device);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device *device) {
    int status = begin(NULL, "handle");
    int index = board_of(uuid);
    if (status != OK) return status;
    if (index < 0) return NOT_FOUND;
    return board_number(index, "lost", 0) ? GPU_IS_LOST : hand_out(index, device);
}

int nvmlDeviceIsMigDeviceHandle(Device device, unsigned *is_slice) {
    *is_slice = (unsigned)device->is_slice;
    return begin(device, "is_slice");
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device slice, Device *device) {
    return hand_out((int)board_number(slice->index, "slice_of", -1), device);
}

int nvmlDeviceGetUUID(Device device, char *uuid, unsigned size) { return text(device, "uuid", uuid, size); }
int nvmlDeviceGetName(Device device, char *name, unsigned size) { return text(device, "name", name, size); }
int nvmlDeviceGetPowerManagementDefaultLimit(Device device, unsigned *limit) { return number(device, "default", limit); }
int nvmlDeviceGetPowerUsage(Device device, unsigned *power) { return number(device, "power", power); }

int nvmlDeviceGetPowerManagementLimitConstraints(Device device, unsigned *lowest, unsigned *highest) {
    int status = begin(device, "range");
    if (status != OK) return status;
    *lowest = (unsigned)board_number(device->index, "min", 0);
    *highest = (unsigned)board_number(device->index, "max", 0);
    return OK;
}

/* The lowest of all limiters: "others" stands for those that are not set through NVML, such as a BMC. */
int nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned *limit) {
    int status = number(device, "limit", limit);
    long long others = status == OK ? board_number(device->index, "others", 0) : 0;
    if (others && others < *limit) *limit = (unsigned)others;
    return status;
}

int nvmlDeviceSetPowerManagementLimit(Device device, unsigned limit) {
    int status = begin(device, "set");
    if (status != OK) return status;
    if (limit < board_number(device->index, "min", 0) || limit > board_number(device->index, "max", 0))
        return INVALID_ARGUMENT;
    long long silently = board_number(device->index, "clamps_to", 0);
    state_append(board_key(device->index, "limit"), silently ? silently : (long long)limit);
    return OK;
}
